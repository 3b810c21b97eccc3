"""Feedback over HTTP: out as a stream, in as the records of import_feedback."""

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotation
from apps.trajectories.models import Trajectory
from tests.datasets.feedback import pair

URL = "/api/v1/projects/desk/feedback"
COMMENT = {
    "task": {"id": "task-1"},
    "trajectory": {"prompt": "Please help.", "response": "Gladly."},
    "text": "kind",
    "anchor": {"steps": [1, 1]},
    "sign": 1,
    "annotator": "ann",
}
OUTCOME = {"task": {"id": "task-1"}, "trajectory": COMMENT["trajectory"], "success": True}


def bearer(project: Project, *scopes: Scope) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_api_key(project=project, scopes=list(scopes))[1]}"}


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return bearer(project, Scope.FEEDBACK_READ, Scope.FEEDBACK_WRITE)


def post(client: Client, headers: dict[str, str], data: bytes, query: str = "") -> Any:
    return client.post(URL + query, data, content_type="application/json", headers=headers)


def read(client: Client, headers: dict[str, str], query: str = "") -> list[dict[str, Any]]:
    answer = client.get(URL + query, headers=headers)
    assert answer.status_code == 200
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", ["array", "lines"])
def test_in_and_out_again(client: Client, headers: dict[str, str], shape: str) -> None:
    records = [pair("task-1"), COMMENT, OUTCOME]
    data = json.dumps(records) if shape == "array" else "\n".join(map(json.dumps, records))
    assert post(client, headers, data.encode()).json() == {
        "created": 3,
        "duplicates": 0,
        "rejected": [],
        "dropped": [],
        "kept": [],
    }
    found = read(client, headers)
    assert [record.get("choice") or record.get("text") for record in found] == ["a", "kind"]
    assert {record["origin"] for record in found} == {"imported"}
    assert read(client, headers, "?kind=comment") == found[1:]
    assert read(client, headers, "?since=2999-01-01T00:00:00Z") == []
    again = post(client, headers, "\n".join(map(json.dumps, found)).encode())
    assert again.json() | {"kept": []} == {
        "created": 0,
        "duplicates": 2,
        "rejected": [],
        "dropped": [],
        "kept": [],
    }
    assert Trajectory.objects.filter(success=True).count() == 1


def test_one_alone(client: Client, headers: dict[str, str]) -> None:
    assert post(client, headers, json.dumps(pair("task-1")).encode()).json()["created"] == 1


def test_a_trainer_that_retries(client: Client, headers: dict[str, str]) -> None:
    once = headers | {"Idempotency-Key": "k"}
    data = json.dumps(pair("task-1")).encode()
    assert [post(client, once, data).json()["created"] for _ in range(2)] == [1, 1]
    assert Annotation.objects.count() == 1


@pytest.mark.parametrize(
    ("record", "pointer", "said"),
    [
        (pair("task-1", choice="c"), "/choice", "Record 2"),
        ({"task": {"id": "t"}}, None, "has none of the keys choice, ranks, accept"),
        ({**COMMENT, "anchor": {"steps": [0, 9]}}, "/anchor/steps", "Record 2"),
        ({**OUTCOME, "success": "yes"}, "/success", "Record 2"),
    ],
)
def test_a_bad_one_changes_nothing(
    client: Client, headers: dict[str, str], record: dict, pointer: str | None, said: str
) -> None:
    data = json.dumps([pair("task-0"), record]).encode()
    answer = post(client, headers, data)
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert said in answer.json()["detail"]
    if pointer:
        assert answer.json()["pointer"].startswith(pointer)
    assert not Annotation.objects.exists()
    assert not Trajectory.objects.exists()
    kept = post(client, headers, data, "?keep_good=true").json()
    assert (kept["created"], kept["rejected"][0]["line"]) == (1, 2)


def test_a_body_that_is_no_json(client: Client, headers: dict[str, str]) -> None:
    answer = post(client, headers, b"[nope")
    assert answer.status_code == 422
    assert "not valid JSON" in answer.json()["detail"]


@pytest.mark.parametrize("query", ["?kind=thumbs", "?since=yesterday"])
def test_filters_that_are_none(client: Client, headers: dict[str, str], query: str) -> None:
    assert client.get(URL + query, headers=headers).status_code == 400


def test_scopes_and_projects(project: Project, client: Client) -> None:
    reader, writer = bearer(project, Scope.FEEDBACK_READ), bearer(project, Scope.FEEDBACK_WRITE)
    data = json.dumps(pair("task-1")).encode()
    assert post(client, reader, data).status_code == 403
    assert client.get(URL, headers=writer).status_code == 403
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    theirs = bearer(elsewhere, Scope.FEEDBACK_READ, Scope.FEEDBACK_WRITE)
    assert post(client, theirs, data).status_code == 404
    assert client.get(URL, headers=theirs).status_code == 404
    assert not Annotation.objects.exists()
