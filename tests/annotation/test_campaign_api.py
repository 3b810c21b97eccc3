"""Campaigns and their items over the JSON API."""

from typing import Any

import pytest

from apps.accounts.models import Project
from apps.annotation.agreement import agreement
from apps.annotation.models import Campaign
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.trajectories.models import Task
from tests.annotation import rows
from tests.api_calls import ApiCaller


@pytest.fixture
def call(project: Project) -> ApiCaller:
    return ApiCaller(project)


@pytest.fixture
def runs(task: Task) -> list[Any]:
    return [rows.trajectory(task, f"run {n}", success=n % 2 == 0, agent_name=f"a{n % 2}") for n in range(4)]


def test_a_campaign_with_its_items_in_one_call(call: ApiCaller, runs: list[Any]) -> None:
    body = {"name": "Which / best", "feedback_types": ["comment", "pairwise"], "overlap": 2,
            "items": {"size": 2, "per_task": 2, "differ": "outcome"}}  # fmt: skip
    made = call("POST", "/campaigns", body)
    assert call.status == 201
    assert made["state"] == "open" and made["feedback_types"] == ["pairwise", "comment"]
    assert made["progress"] == {"items": 2, "required": 4, "completed": 0, "more": 0, "locked": 0}
    path = "/campaigns/Which%20%2F%20best"
    assert call("GET", path) == made
    items = call.all_pages(f"{path}/items", 1)
    assert len(items) == 2 and items[0]["campaign"] == "Which / best" and items[0]["overlap"] == 2
    assert {*items[0]["trajectories"]} < {str(run.pk) for run in runs}
    assert call("GET", f"/items/{items[0]['id']}") == items[0]
    assert call("GET", f"{path}/items", purpose="gold")["items"] == []
    again = call("POST", f"{path}/items", {"size": 2, "per_task": 3, "differ": "outcome"})
    assert again == {"created": 1, "duplicates": 2}


def test_nothing_is_left_of_a_campaign_whose_items_are_refused(call: ApiCaller, runs: list[Any]) -> None:
    body = {"name": "c", "feedback_types": ["pairwise"], "items": {"size": 3}}
    refused = call("POST", "/campaigns", body)
    assert call.status == 400 and "trajectories per item" in refused["detail"]
    assert not Campaign.objects.exists()


def test_state_and_fields_change_together_or_not(call: ApiCaller, campaign: Campaign) -> None:
    path = f"/campaigns/{campaign.name.replace(' ', '%20')}"
    changed = call("PATCH", path, {"guidelines": "Read first.", "state": "paused"})
    assert (changed["state"], changed["guidelines"], changed["version"]) == ("paused", "Read first.", 2)
    for state in ("open", "closed", "archived", "open"):
        assert call("PATCH", path, {"state": state})["state"] == state
    call("PATCH", path, {"state": "closed", "rubric": "none"})
    assert call.status == 404
    assert call("GET", path)["state"] == "open"
    assert [row["name"] for row in call("GET", "/campaigns", state="open")["items"]] == [campaign.name]
    assert call("GET", "/campaigns", state="closed")["items"] == []


def test_null_clears_and_what_is_left_out_stays(call: ApiCaller, campaign: Campaign) -> None:
    path = f"/campaigns/{campaign.name.replace(' ', '%20')}"
    full = {"deadline": "2030-01-01T00:00:00Z", "max_items_per_annotator": 5, "hourly_pay": 12.5}
    changed = call("PATCH", path, full)
    assert {name: changed[name] for name in full} == full
    cleared = call("PATCH", path, {"deadline": None})
    assert cleared["deadline"] is None and cleared["hourly_pay"] == 12.5
    refused = call("PATCH", path, {"overlap": None})
    assert call.status == 422 and refused["pointer"] == "/overlap"
    refused = call("PATCH", path, {"deadline": "2030-01-01T00:00:00"})
    assert call.status == 422 and "timezone" in refused["detail"]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"name": "Which is better", "feedback_types": ["comment"]}, 409, "/name"),
        ({"name": "c", "feedback_types": []}, 422, "/feedback_types"),
        ({"name": "c", "feedback_types": ["thumbs"]}, 422, "/feedback_types/0"),
        ({"name": "c", "feedback_types": ["rubric"]}, 400, "/rubric"),
        ({"name": "c", "feedback_types": ["rubric"], "rubric": "none"}, 404, "/rubric"),
        ({"name": "c", "feedback_types": ["comment"], "overlaps": 2}, 422, "/overlaps"),
        ({"name": "c", "feedback_types": ["comment"], "hourly_pay": "1e9"}, 422, "/hourly_pay"),
        ({"name": "c", "feedback_types": ["pairwise"], "options": {"pairwise": {"by": "x"}}}, 400,
         "/options/pairwise/by"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    call: ApiCaller, campaign: Campaign, body: dict[str, Any], status: int, pointer: str
) -> None:
    refused = call("POST", "/campaigns", body)
    assert (call.status, refused["pointer"]) == (status, pointer)


def test_a_rubric_by_its_name(call: ApiCaller, project: Project) -> None:
    save_rubric(project=project, name="Good", criteria=[CriterionDraft(name="polite")])
    made = call("POST", "/campaigns", {"name": "c", "feedback_types": ["rubric"], "rubric": "Good"})
    assert made["rubric"] == "Good@1"


def test_agreement_is_the_commands(call: ApiCaller, project: Project, campaign: Campaign, db: None) -> None:
    records = [
        {"task": {"id": f"t{n}"}, "a": {"messages": _said(n, "yes")}, "b": {"messages": _said(n, "no")},
         "choice": "ab"[(n * person) % 2], "annotator": f"p{person}", "campaign": campaign.name}
        for n in range(4) for person in range(2)
    ]  # fmt: skip
    assert call("POST", "/feedback", records)["created"] == 8
    path = f"/campaigns/{campaign.name.replace(' ', '%20')}/agreement"
    expected = agreement(project=project, campaign=campaign.name)["kinds"]
    assert call("GET", path) == {"campaign": campaign.name, "kinds": expected}
    assert expected["pairwise"]["alpha"] is not None


def _said(number: int, answer: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"Question {number}"},
        {"role": "assistant", "content": f"{answer} {number}"},
    ]
