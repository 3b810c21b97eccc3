"""The same filter finds the same trajectories everywhere: page, API, client, campaign, bulk job, dataset, exports."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from touchstone_client.filters import filter_params, filter_query

from apps.accounts.models import Project, Role
from apps.annotation.feedback.records import feedback_records
from apps.annotation.models import Campaign, Item
from apps.annotation.services import create_campaign
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.datasets.services import freeze_dataset
from apps.datasets.version_builder import build_dataset_version
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError, parse_filter
from tests.api_calls import ApiCaller
from tests.factories import member_client
from tests.trajectories.test_filters import tool_record
from tests.trajectories.test_views import bring
from workers.schema import read_records

LIST = "/p/desk/trajectories/"
FAILED = "agent=fox&pattern=tool-error&failed_tool=search&success=no"


def sample(number: int, again: int) -> dict[str, Any]:
    result = "Error: no such order" if number % 2 == 0 else "order 5"
    record = tool_record(number, ("search", result), agent="fox" if number % 4 == 0 else "owl", success=False)
    record["messages"].append({"role": "assistant", "content": f"Sample {again}."})
    return record


@pytest.fixture
def desk(project: Project, own_home: None) -> Project:
    """Two trajectories each of tasks 0 to 7; those of the tasks 0 and 4 are found by FAILED."""
    for number in range(8):
        bring(project, sample(number, 0), sample(number, 1))
    return project


@pytest.fixture
def wanted(desk: Project) -> set[int]:
    found = set(filter_trajectories(desk, FAILED).values_list("pk", flat=True))
    assert len(found) == 4
    return found


def test_page_api_and_client(desk: Project, wanted: set[int]) -> None:
    call, page = ApiCaller(desk), member_client(desk, Role.RESEARCHER)
    listed = page.get(f"{LIST}?{FAILED}").content.decode()
    boxes = [part.split('"')[0] for part in listed.split('name="selected" value="')[1:]]
    assert {int(box) for box in boxes} == wanted
    given = {"agent": "fox", "pattern": ["tool-error"], "failed_tool": "search", "success": False}
    for params in (filter_params(None, given), filter_params(FAILED, {}), filter_params("agent=fox", given)):
        pages = call.all_pages("/trajectories", 3, **params)
        assert {int(row["id"]) for row in pages} == wanted
    assert parse_filter(filter_query(given)) == parse_filter(FAILED)


@pytest.mark.parametrize("form", ["text", "object"])
def test_a_campaign_of_the_api(desk: Project, wanted: set[int], form: str) -> None:
    filter = FAILED if form == "text" else parse_filter(FAILED).to_builtins()
    items = {"size": 1, "per_task": 10, "filter": filter}
    ApiCaller(desk)("POST", "/campaigns", {"name": "A", "feedback_types": ["rating"], "items": items})
    assert set(Item.objects.values_list("trajectories", flat=True)) == wanted


def test_a_campaign_of_the_page(desk: Project, wanted: set[int]) -> None:
    page = member_client(desk, Role.RESEARCHER)
    form = page.get(f"/p/desk/campaigns/new/?{FAILED}").content.decode()
    assert '<option value="fox" selected>' in form and 'value="search"' in form
    fields: dict[str, Any] = {"name": "A", "feedback_types": ["rating"], "overlap": 1, "ordering": "random"}
    fields |= {"lock_minutes": 30, "gold_percent": 0, "gold_threshold": 70}
    fields |= {"size": 1, "per_task": 10, "differ": "any", "partner": "matching", "seed": 0}
    fields |= dict(part.split("=") for part in FAILED.split("&"))
    count = page.get("/p/desk/campaigns/preview/", fields).content.decode()
    assert "4 items" in count and "2 tasks" in count
    page.post("/p/desk/campaigns/new/", fields)
    assert set(Item.objects.values_list("trajectories", flat=True)) == wanted
    create_campaign(project=desk, name="B", feedback_types=["rating"])
    other = Campaign.objects.get(name="B")
    page.post("/p/desk/campaigns/add-items/", fields | {"campaign_id": other.pk})
    assert set(other.items.values_list("trajectories", flat=True)) == wanted
    refused = page.post("/p/desk/campaigns/new/", fields | {"name": "C", "success": "maybe"})
    assert refused.status_code == 422 and "choose one of the list" in refused.content.decode()
    unknown = page.post("/p/desk/campaigns/new/", fields | {"name": "C", "campaign": "Z"})
    assert unknown.status_code == 422 and "no campaign of this name" in unknown.content.decode()
    nothing = page.post("/p/desk/campaigns/new/", fields | {"name": "C", "tag": "none"})
    assert nothing.status_code == 422 and "make no item" in nothing.content.decode()
    assert not Campaign.objects.filter(name="C").exists()


def test_a_dataset_version_and_the_feedback(desk: Project, wanted: set[int]) -> None:
    version = freeze_dataset(project=desk, name="a", by=None, filters={"filter": FAILED}, claimed=True)
    assert version.filters["filter"] == parse_filter(FAILED).query
    build_dataset_version(version)
    folder = data_folder(DatasetVersion.objects.get())
    frozen = [record for path in sorted(folder.glob("*.jsonl.zst")) for record in read_records(path)]
    assert {int(record.trajectory.id) for record in frozen} == wanted
    records = feedback_records(project=desk, filters={"filter": FAILED}, bare=True)
    assert {int(record.trajectory.id) for record in records} == wanted
    with pytest.raises(FilterError, match="Did you mean agent"):
        freeze_dataset(project=desk, name="a", by=None, filters={"filter": "agnet=fox"})
    with pytest.raises(FilterError, match="no campaign of this name"):
        freeze_dataset(project=desk, name="a", by=None, filters={"filter": "campaign=Z"})


def test_an_annotation_counts_where_all_trajectories_of_its_item_match(
    desk: Project, wanted: set[int]
) -> None:
    call = ApiCaller(desk)
    for number in range(8):
        sides = {side: {"messages": sample(number, again)["messages"]} for again, side in enumerate("ab")}
        call(
            "POST", "/feedback", {"task": {"id": f"task-{number}"}, "choice": "a", "annotator": "ann"} | sides
        )
        assert call.status == 200
    first, second = sorted(wanted)[:2]
    kinds = {"kinds": ["pairwise"]}
    assert len(list(feedback_records(project=desk, filters=kinds))) == 8
    found = feedback_records(project=desk, filters=kinds | {"filter": FAILED}, bare=True)
    assert {int(side.id) for record in found for side in (record.a, record.b)} == wanted
    half = kinds | {"filter": f"id={first}"}
    assert list(feedback_records(project=desk, filters=half)) == []
    assert len(list(feedback_records(project=desk, filters=kinds | {"filter": f"id={first},{second}"}))) == 1


def test_exports(desk: Project, wanted: set[int], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with redirect_stdout(io.StringIO()):
        call_command("export_trajectories", "desk", format="atif", filter=FAILED, out=str(out))
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert {int(document["session_id"]) for document in written} == wanted


def test_conditions_about_annotation(desk: Project, wanted: set[int], client: Client) -> None:
    create_campaign(project=desk, name="A", feedback_types=["rating"])
    call = ApiCaller(desk)
    call("POST", "/campaigns/A/items", {"size": 1, "per_task": 10, "filter": FAILED})

    def found(query: str) -> set[int]:
        return set(filter_trajectories(desk, query).values_list("pk", flat=True))

    assert found("campaign=A") == found("in_campaign=yes") == wanted
    assert found("in_campaign=no&agent=fox") == set()
    assert found("annotated=yes") == set()
    rating = {"accept": True, "annotator": "ann", "trajectory": {"messages": sample(4, 0)["messages"]}}
    call("POST", "/feedback", {"task": {"id": "task-4"}} | rating)
    assert call.status == 200
    [one] = filter_trajectories(desk, "task=task-4").order_by("pk")[:1]
    assert found("annotated=yes") == {one.pk}
    assert found("annotated=no&campaign=A") == wanted - {one.pk}
