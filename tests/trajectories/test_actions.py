"""From trajectories to work: the actions of their list, views over the API, exports, and the agents."""

import gzip
import json

import pytest
from django.db.models import Q
from django.test import Client

from apps.accounts.models import AuditEvent, Project, Role
from apps.annotation.models import Assignment, Campaign
from apps.core.jobs import job_queue
from apps.core.storage.artifacts import open_file
from apps.datasets.export_jobs import build_export
from apps.datasets.models import Export
from apps.inbox.models import Notification
from apps.trajectories.agent_overview import summarize_agents
from apps.trajectories.models import Import, SavedView, Trajectory
from tests.api_calls import ApiCaller
from tests.factories import make_member, member_client
from tests.trajectories.conftest import record
from tests.trajectories.test_filters import tool_record
from tests.trajectories.test_views import bring

LIST = "/p/desk/trajectories/"


@pytest.fixture
def page(project: Project) -> Client:
    return member_client(project, Role.OWNER)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("campaign", "/p/desk/campaigns/new/?"),
        ("items", "/p/desk/campaigns/add-items/?"),
        ("score", "/p/desk/bulk/new/?work=endpoint&"),
        ("judge", "/p/desk/bulk/new/?work=judge&"),
        ("dataset", "/p/desk/datasets/new/?"),
        ("export", "/p/desk/datasets/trajectories/export/?"),
        ("delete", "/p/desk/datasets/trajectories/delete/?"),
    ],
)
def test_an_action_leads_to_its_page_with_the_filter(
    project: Project, page: Client, name: str, address: str
) -> None:
    first, second = bring(project, record(1, agent="fox")), bring(project, record(2, agent="fox"))
    action = f"{LIST}actions/{name}/"
    answer = page.post(action, {"all_matching": "1", "query": "agent=fox&success=unknown"})
    assert answer["Location"] == f"{address}agent=fox&success=unknown"
    assert "fox" in page.get(answer["Location"]).content.decode()
    chosen = page.post(action, {"selected": [second.pk, first.pk], "query": "agent=owl"})
    assert chosen["Location"] == f"{address}id={first.pk}-{second.pk}"
    assert page.get(chosen["Location"]).status_code == 200
    assert page.post(action, {"all_matching": "1", "query": "agnet=fox"}).status_code == 400
    assert page.post(action, {}).status_code == 400
    assert page.post(f"{LIST}actions/burn/", {"selected": [first.pk]}).status_code == 404


def test_a_campaign_is_created_from_the_filter_for_three_people(project: Project, page: Client) -> None:
    for number in range(4):
        bring(project, *(tool_record(number, ("search", f"Error: {n}"), agent="fox") for n in range(3)))
    people = [make_member(project, f"{name}@example.org", Role.ANNOTATOR) for name in ("ann", "ben", "cho")]
    form = page.get("/p/desk/campaigns/new/?agent=fox&pattern=tool-error").content.decode()
    assert "ann@example.org" in form
    fields = {"name": "Failed", "feedback_types": ["pairwise"], "overlap": 1, "ordering": "random"}
    fields |= {"lock_minutes": 30, "gold_percent": 0, "gold_threshold": 70, "agent": "fox"}
    fields |= {"size": 2, "per_task": 3, "differ": "any", "seed": 0, "limit": 5, "pattern": "tool-error"}
    fields["partner"] = "matching"
    fields["assignees"] = [person.pk for person in people]
    page.post("/p/desk/campaigns/new/", fields)
    campaign = Campaign.objects.get()
    assert (campaign.overlap, campaign.items.count()) == (3, 5)
    held = Assignment.objects.filter(state=Assignment.State.ASSIGNED, is_reserved=True)
    assert held.count() == 15 and set(held.values_list("annotator__user", flat=True)) == {
        p.pk for p in people
    }
    told = Notification.objects.filter(event="items.assigned")
    assert {row.user_id for row in told} == {p.pk for p in people} and told.count() == 3
    assert {row.title for row in told} == {"5 items were assigned to you in Failed"}
    stranger = make_member(Project.objects.create(slug="other"), "eve@example.org", Role.OWNER)
    refused = page.post("/p/desk/campaigns/new/", fields | {"name": "B", "assignees": [stranger.pk]})
    assert refused.status_code == 422


def test_views_over_the_api(project: Project) -> None:
    call = ApiCaller(project)
    made = call("POST", "/views", {"name": "Late", "filter": {"text": "late", "success": False}})
    assert call.status == 201 and made["filter"] == "text=late&success=no"
    assert made["conditions"] == {"text": "late", "success": "no"}
    assert call("GET", "/views")["items"] == [made] and call("GET", f"/views/{made['id']}") == made
    renamed = call("PATCH", f"/views/{made['id']}", {"name": "Too late"})
    assert (renamed["name"], renamed["filter"]) == ("Too late", made["filter"])
    call("POST", "/views", {"name": "Too late", "filter": "text=a"})
    assert call.status == 409
    call("POST", "/views", {"name": "B", "filter": "colour=red"})
    assert call.status == 400
    call("DELETE", f"/views/{made['id']}")
    assert call.status == 204 and not SavedView.objects.exists()


def test_an_export_of_the_filter(project: Project, page: Client, own_home: None) -> None:
    bring(project, record(1, agent="fox", id="fox-1"))
    bring(project, record(2, agent="owl"))
    address = "/p/desk/datasets/trajectories/export/?agent=fox"
    assert b"<strong>1 trajectory</strong>" in page.get(address).content
    assert page.post(address, {"format": "none"}).status_code == 400
    page.post(address, {"format": "openai"})
    export = job_queue.claim_next(Export, Q(project=project))
    assert export is not None
    build_export(export)
    export.refresh_from_db()
    assert (export.lines, export.error, export.about) == (1, "", "Trajectories: agent=fox")
    with open_file(export.artifact) as file:
        [line] = gzip.decompress(file.read()).decode().splitlines()
    assert json.loads(line)["task"]["id"] == "task-1"
    listed = page.get("/p/desk/datasets/exports/").content.decode()
    assert "Trajectories: agent=fox" in listed
    assert AuditEvent.objects.filter(verb="trajectories.exported").get().data["filter"] == "agent=fox"


def test_the_api_streams_an_export(project: Project, client: Client, key: dict[str, str]) -> None:
    bring(project, record(1, agent="fox"), record(2, agent="owl"))
    address = "/api/v1/projects/desk/trajectories/export"
    answer = client.get(f"{address}?filter=agent%3Dfox&format=openai", headers=key)
    [line] = answer.getvalue().decode().splitlines()  # type: ignore[attr-defined]
    assert json.loads(line)["task"]["id"] == "task-1"
    assert client.get(f"{address}?filter=agnet%3Dfox", headers=key).status_code == 400
    assert client.get(f"{address}?format=none", headers=key).status_code == 400


def test_what_follows_an_import(project: Project, page: Client) -> None:
    job = Import.objects.create(
        project=project, filename="a.jsonl", file="a", format="openai", state="succeeded", created=1
    )
    row = bring(project, record(1))
    Trajectory.objects.filter(pk=row.pk).update(import_job=job)
    seen = page.get(f"{LIST}imports/{job.pk}/").content.decode()
    for address in (f"{LIST}?import_id={job.pk}", f"/p/desk/campaigns/new/?import_id={job.pk}"):
        assert f'href="{address}"' in seen and page.get(address).status_code == 200
    assert f"/p/desk/bulk/new/?work=endpoint&amp;import_id={job.pk}" in seen


def test_all_agents(project: Project, page: Client) -> None:
    rows = [
        tool_record(n, ("search", "Error: x"), agent="fox", success=n < 3, reward=n / 4) for n in range(4)
    ]
    rows += [record(n + 10, agent={"name": "owl", "version": version}) for n, version in enumerate("12")]
    bring(project, *rows, record(20))
    found = {agent.key: agent for agent in summarize_agents(project)}
    fox = found["fox@"]
    assert (fox.trajectories, fox.tasks, fox.judged, fox.success, fox.tool_errors) == (4, 4, 4, 0.75, 4)
    assert (fox.reward, fox.success_interval, fox.query) == (0.375, "[30.1, 95.4]", "agent=fox")
    assert (found["owl@1"].success, found["owl@1"].query) == (None, "agent=owl&version=1")
    assert found["@"].query == "" and found["@"].name == "unnamed"
    seen = page.get(f"{LIST}agents/").content.decode()
    assert "75.0 %" in seen and "?agent=fox&amp;pattern=tool-error" in seen
    compared = page.get(f"{LIST}agents/?a=owl%401&b=owl%402").content.decode()
    assert "No common tasks" in compared
