"""The filter language: what it reads, what it refuses, and what it finds."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.trajectories.filter_fields import FILTER_FIELDS
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError, TrajectoryFilter, filter_of_ids, parse_filter
from apps.trajectories.models import Import, Trajectory
from apps.trajectories.patterns import tool_names
from tests.trajectories.conftest import record
from tests.trajectories.test_explorer import BROKEN, TRACE, A, agent
from tests.trajectories.test_views import bring

LIST = "/p/desk/trajectories/"


@pytest.mark.parametrize(
    ("source", "query"),
    [
        ("", ""),
        (None, ""),
        ({}, ""),
        ("?agent=desk&success=no", "agent=desk&success=no"),
        ("success=false&agent=desk&agent=desk&text=", "agent=desk&success=no"),
        ({"success": False, "agent": ["desk", "shop"]}, "agent=desk&agent=shop&success=no"),
        (
            {"success": True, "steps_from": 3, "reward_to": 0.123456789},
            "success=yes&steps_from=3&reward_to=0.123456789",
        ),
        ({"id": [3, 1, "2", "7-9"]}, "id=1-3%2C7-9"),
        ("metadata=model+%3D+large&tag=a&tag=b", "tag=a&tag=b&metadata=model%3Dlarge"),
        ("until=2030-01-31&since=2030-01-01T10:00:00Z", "since=2030-01-01T10%3A00%3A00Z&until=2030-01-31"),
        ("endpoint=quality&score_from=-1", "endpoint=quality&score_from=-1.0"),
    ],
)
def test_a_filter_has_one_text(source: Any, query: str) -> None:
    filter = parse_filter(source)
    assert filter.query == query
    assert parse_filter(filter.query) == filter == parse_filter(filter.to_builtins())
    assert bool(filter) is bool(query)


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("agnet=desk", "", "Did you mean agent?"),
        ("desk", "", "not name=value pairs"),
        ("x" * 9000, "", "the limit is 8,000"),
        ("success=maybe", "success", "it must be one of yes, no, unknown"),
        ("pattern=none", "pattern", "it must be one of tool-error"),
        ("format=none", "format", "atif"),
        ("steps_from=-1", "steps_from", "whole number from 0"),
        ("steps_to=" + "9" * 20, "steps_to", "whole number"),
        ("reward_from=nan", "reward_from", "it must be a number"),
        ("reward_from=1&reward_to=0", "reward_to", "less than reward_from"),
        ("metadata=large", "metadata", "must be key=value"),
        ("since=yesterday", "since", "write 2030-01-31"),
        ("since=2030-13-31", "since", "write 2030-01-31"),
        ("until=9999-12-31", "until", "write 2030-01-31"),
        ("since=0001-01-01T00:00:00%2B23:59", "since", "write 2030-01-31"),
        ("id=0", "id", "such as 12,15-20"),
        ("id=5-2", "id", "such as 12,15-20"),
        ("text=%21%21", "text", "no word to search for"),
        ("text=" + "a" * 500, "text", "the limit is 400"),
        ("agent=%00", "agent", "no text"),
        ("success=yes&success=no", "success", "give it once"),
        ("score_from=1", "score_from", "needs endpoint"),
        ({"agent": {"a": 1}}, "agent", "must be a text"),
        ({"tag": [str(n) for n in range(51)]}, "tag", "the limit is 50"),
        ({"id": list(range(1, 4000, 2))}, "id", "the limit is 1,000"),
    ],
)
def test_a_wrong_filter_says_what_is_right(source: Any, name: str, message: str) -> None:
    with pytest.raises(FilterError) as error:
        parse_filter(source)
    assert message in error.value.errors[name]
    assert error.value.pointer == "/filter"


def test_all_mistakes_are_named_together() -> None:
    with pytest.raises(FilterError) as error:
        parse_filter("steps_from=x&reward_to=y&agent=desk")
    assert set(error.value.errors) == {"steps_from", "reward_to"}


def test_every_condition_is_a_field_of_the_value() -> None:
    assert tuple(TrajectoryFilter.__dataclass_fields__) == tuple(FILTER_FIELDS)


def tool_record(number: int, *calls: tuple[str, str], **fields: Any) -> dict[str, Any]:
    """calls: (tool, what it gave back)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Task {number}."}]
    for place, (name, result) in enumerate(calls):
        call = {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{place}", "content": result})
    messages.append({"role": "assistant", "content": f"Done {number}."})
    return {"task": {"id": f"task-{number}"}, "messages": messages} | fields


@pytest.mark.parametrize(
    ("filter", "tasks"),
    [
        ("tool=search", {1, 2}),
        ("tool=search&tool=pay", {2}),
        ("failed_tool=search", {1}),
        ("failed_tool=pay", {2}),
        ("pattern=tool-error", {1, 2}),
        ("pattern=tool-error&agent=fox", {1}),
        ("agent=fox&agent=owl", {1, 2, 3}),
        ("agent=nobody", set()),
        ("success=unknown", {3}),
        ("success=true", {2}),
        ("tokens_from=1000", set()),
        ("since=2020-01-01&until=2100-01-01", {1, 2, 3}),
        ("until=2020-01-01", set()),
        ("annotated=no&in_campaign=no", {1, 2, 3}),
        ("annotated=yes", set()),
        ("task=task-1&task=task-3", {1, 3}),
    ],
)
def test_what_is_found(project: Project, filter: str, tasks: set[int]) -> None:
    bring(
        project,
        tool_record(1, ("search", "Error: no such order"), agent="fox", success=False),
        tool_record(
            2, ("search", "order 5"), ("pay", "Traceback (most recent call last)"), agent="owl", success=True
        ),
        tool_record(3, agent="owl"),
    )
    rows = filter_trajectories(project, filter)
    assert set(rows.values_list("task__external_id", flat=True)) == {f"task-{number}" for number in tasks}


def test_numbers_find_only_what_is_the_projects(project: Project) -> None:
    rows = bring(project, record(1)), bring(project, record(2))
    other = bring(Project.objects.create(slug="other"), record(3))
    filter = filter_of_ids([row.pk for row in (*rows, other)])
    assert set(filter_trajectories(project, filter)) == set(rows)


def test_tools_of_steps() -> None:
    named = agent("", ("search", "a"), ("pay", "b"))
    assert tool_names([A, A, BROKEN, TRACE]) == (["do"], ["do"])
    assert tool_names([named]) == (["search", "pay"], [])
    assert tool_names([agent("Hello.")]) == ([], [])


def test_an_import_is_found_by_its_number(project: Project, researcher: User, client: Client) -> None:
    row = bring(project, record(1))
    job = Import.objects.create(project=project, filename="a.jsonl", file="a", format="openai")
    Trajectory.objects.filter(pk=row.pk).update(import_job=job)
    assert list(filter_trajectories(project, {"import_id": job.pk})) == [row]
    with pytest.raises(FilterError, match="no import of this number"):
        filter_trajectories(project, {"import_id": job.pk + 1})
    page = client.get(f"{LIST}?import_id={job.pk + 1}").content.decode()
    assert "no import of this number" in page and "task-1" not in page


@pytest.mark.parametrize(
    "query",
    ["success=maybe", "reward_from=x", "campaign=none", "steps_from=5&steps_to=1", "text=%21", "id=x"],
)
def test_an_invalid_value_shows_no_rows(
    project: Project, researcher: User, client: Client, query: str
) -> None:
    bring(project, record(1))
    assert "task-1" in client.get(LIST).content.decode()
    page = client.get(f"{LIST}?{query}").content.decode()
    assert "The filter has an error" in page and "task-1" not in page and "invalid-feedback" in page


def test_conditions_are_chips_that_can_be_taken_away(
    project: Project, researcher: User, client: Client
) -> None:
    bring(project, record(1, agent="fox"))
    page = client.get(f"{LIST}?agent=fox&agent=owl&success=no").content.decode()
    assert 'href="?agent=fox&amp;success=no"' in page and 'href="?agent=fox&amp;agent=owl"' in page
    assert '<input type="hidden" name="agent" value="fox">' in page


def test_the_list_of_the_api_and_the_page_agree(
    project: Project, researcher: User, client: Client, key: dict[str, str]
) -> None:
    bring(project, tool_record(1, ("search", "Error: x"), agent="fox"), record(2, agent="fox"), record(3))
    query = "agent=fox&failed_tool=search"
    wanted = {str(row.pk) for row in filter_trajectories(project, query)}
    assert len(wanted) == 1
    listed = client.get(f"/api/v1/projects/desk/trajectories?{query}", headers=key).json()
    assert {row["id"] for row in listed["items"]} == wanted
    page = client.get(f"{LIST}?{query}").content.decode()
    assert all(f'value="{pk}"' in page for pk in wanted) and "task-2" not in page
    refused = client.get("/api/v1/projects/desk/trajectories?success=maybe", headers=key)
    assert refused.status_code == 400 and "it must be one of yes, no, unknown" in refused.json()["detail"]
