"""Connectors over the JSON API, and by the command `connect`."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.connectors.models import Connector
from apps.connectors.services import start_due_runs
from apps.core.jobs import job_queue
from apps.trajectories.models import Trajectory
from tests.connectors.conftest import pull
from tests.connectors.test_pulling import Langfuse, at


class ApiClient:
    def __init__(self, project: Project) -> None:
        self._key = create_api_key(project=project, scopes=[Scope.ADMIN], by=None)[1]
        self._root = f"/api/v1/projects/{project.slug}/connectors"

    def __call__(self, method: str, path: str = "", body: Any = None) -> Any:
        answer = Client().generic(
            method,
            self._root + path,
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"Authorization": f"Bearer {self._key}"},
        )
        return answer.status_code, json.loads(answer.content) if answer.content else None


@pytest.fixture
def call(project: Project) -> ApiClient:
    return ApiClient(project)


def made(url: str) -> dict[str, Any]:
    return {"kind": "langfuse", "name": "Live", "address": url, "username": "pk-lf-1", "secret": "sk-lf-1"}


def test_create_change_run_and_delete(call: ApiClient, langfuse: Langfuse) -> None:
    status, connector = call("POST", "", made(langfuse[1]) | {"options": {"tag": "a"}, "every_minutes": 30})
    assert (status, connector["has_secret"], connector["options"]) == (201, True, {"tag": "a"})
    assert "secret" not in connector
    place = f"/{connector['id']}"
    status, changed = call("PATCH", place, {"name": "Other", "state": "paused"})
    assert (status, changed["name"], changed["state"], changed["every_minutes"]) == (
        200,
        "Other",
        "paused",
        30,
    )
    assert call("PATCH", place, {"every_minutes": None})[1]["every_minutes"] is None
    assert call("PATCH", place, {"state": "asleep"})[0] == 422
    assert call("GET", "")[1]["items"][0]["name"] == "Other"
    status, run = call("POST", f"{place}/runs")
    assert (status, run["state"]) == (201, "queued")
    assert call("POST", f"{place}/runs")[0] == 409
    assert call("POST", f"{place}/runs/{run['id']}/cancel")[1]["state"] == "cancelled"
    assert [each["id"] for each in call("GET", f"{place}/runs")[1]["items"]] == [run["id"]]
    status, pushed = call("POST", f"{place}/runs", {"direction": "push"})
    assert (status, pushed["direction"], pushed["pushed"]) == (201, "push", 0)
    assert call("POST", f"{place}/runs", {"direction": "sideways"})[0] == 422
    assert call("PATCH", place, {"push_endpoint": "none"})[1]["pointer"] == "/push_endpoint"
    call("POST", f"{place}/runs/{pushed['id']}/cancel")
    assert call("DELETE", place) == (204, None)
    assert call("GET", place)[0] == 404


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": "sentry"}, "/kind"),
        ({"name": " "}, "/name"),
        ({"address": "http://10.0.0.1"}, "/address"),
        ({"options": {"colour": "red"}}, "/options/colour"),
        ({"options": {"since": "soon"}}, "/options/since"),
        ({"every_minutes": 1}, "/every_minutes"),
        ({"overlap_minutes": -1}, "/overlap_minutes"),
        ({"secret": ""}, "/secret"),
        ({"secret": "a\nb"}, "/secret"),
    ],
)
def test_what_is_refused_has_a_pointer(
    call: ApiClient, langfuse: Langfuse, change: dict[str, Any], pointer: str
) -> None:
    status, problem = call("POST", "", made(langfuse[1]) | change)
    assert (status, problem["pointer"]) == (400, pointer)


def test_due_connectors_are_run_once(call: ApiClient, langfuse: Langfuse) -> None:
    langfuse[0].add("t", at(0))
    call("POST", "", made(langfuse[1]) | {"every_minutes": 30})
    call("POST", "", made(langfuse[1]) | {"name": "On demand"})
    assert start_due_runs() == 1
    assert start_due_runs() == 0
    run = Connector.objects.get(name="Live").runs.get()
    assert run.state == "queued"
    job_queue.request_cancel(run)
    connector = Connector.objects.get(name="Live")
    assert connector.next_run_at is not None and pull(connector).created == 1


def connect(*args: str, **given: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("connect", *args, "--json", stdout=out, stderr=StringIO(), **given)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_command_creates_pulls_and_pulls_again(
    project: Project, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_HOST", langfuse[1])
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-1")
    langfuse[0].add("t1", at(0))
    first = connect(project.slug, "langfuse", "--every", "60", "--option", "trace_name=support")
    assert (first["connector"], first["state"], first["created"]) == ("langfuse", "succeeded", 1)
    connector = Connector.objects.get()
    assert (connector.every_minutes, connector.options) == (60, {"trace_name": "support"})
    second = connect(project.slug, "langfuse")
    assert (second["id"], second["created"]) == (first["id"], 0)
    assert Trajectory.objects.count() == 1
    third = connect(project.slug, "langfuse", "--push")
    assert (third["created"], third["pushed"], third["unchanged"]) == (0, 0, 0)
    with pytest.raises(CommandError, match="takes no scores"):
        connect(project.slug, "s3", "--address", langfuse[1], "--option", "bucket=b", "--push-endpoint", "x")


def test_the_command_says_what_is_wrong(project: Project, langfuse: Langfuse) -> None:
    with pytest.raises(CommandError, match="There is no kind of connector 'sentry'; choose from langfuse"):
        connect(project.slug, "sentry")
    with pytest.raises(CommandError, match="Enter the public key"):
        connect(project.slug, "langfuse", "--address", langfuse[1])
    with pytest.raises(CommandError, match="write --option NAME=VALUE"):
        connect(project.slug, "phoenix", "--address", langfuse[1], "--option", "project")
    with pytest.raises(CommandError, match="answered 401"):
        connect(project.slug, "phoenix", "--address", langfuse[1])
