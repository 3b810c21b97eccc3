"""Runs and models over HTTP."""

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.core.jobs.job_queue import claim_next
from apps.datasets.models import DatasetVersion
from apps.training import runner
from apps.training.models import TrainingRun
from tests.training import fake_child as child

RUNS = "/api/v1/projects/desk/runs"
pytestmark = [pytest.mark.usefixtures("fake_child")]


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return bearer(project, Scope.TRAIN)


def bearer(project: Project, scope: Scope) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_api_key(project=project, scopes=[scope])[1]}"}


def post(client: Client, headers: dict[str, str], **body: Any) -> Any:
    return client.post(RUNS, json.dumps(body), content_type="application/json", headers=headers)


def test_a_run_and_its_model(
    dataset_version: DatasetVersion, client: Client, headers: dict[str, str]
) -> None:
    recipe = {"label_smoothing": child.COMPLETE}
    once = headers | {"Idempotency-Key": "one"}
    answers = [post(client, once, dataset="first", recipe=recipe, name="polite") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert TrainingRun.objects.count() == 1
    started = answers[0].json()
    assert (started["state"], started["dataset"], started["model"]) == ("queued", "desk/first@1", None)
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    found = client.get(f"/api/v1/runs/{run.pk}", headers=headers).json()
    assert (found["state"], found["model"], found["report"]) == ("succeeded", "desk/polite@1", child.REPORT)
    assert client.get(RUNS, headers=headers).json() == {"items": [found], "next": None}
    (model,) = client.get("/api/v1/projects/desk/models", headers=headers).json()["items"]
    assert (model["model"], model["run"], model["dataset"]) == ("desk/polite@1", run.pk, "desk/first@1")
    assert (model["manifest"]["objective"], model["report"]) == ("bradley_terry", child.REPORT)


def test_cancelled(dataset_version: DatasetVersion, client: Client, headers: dict[str, str]) -> None:
    run = post(client, headers, dataset="first", recipe="bradley-terry").json()["run"]
    answer = client.post(f"/api/v1/runs/{run}/cancel", headers=headers)
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")


def test_a_run_without_a_recipe_searches_for_one(
    dataset_version: DatasetVersion, client: Client, headers: dict[str, str]
) -> None:
    answer = post(client, headers, dataset="first").json()
    assert answer["recipe"] == "auto"
    assert TrainingRun.objects.get().recipe["search"] == ["linear", "hybrid", "frozen", "unfrozen"]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"recipe": "bradley-terry"}, 422, "/dataset"),
        ({"dataset": "none", "recipe": "bradley-terry"}, 404, None),
        ({"dataset": "first", "recipe": "none"}, 404, "/recipe"),
        ({"dataset": "first", "recipe": {"epoch": 3}}, 400, "/epoch"),
        ({"dataset": "first", "recipe": "epochs = 0"}, 400, "/epochs"),
        ({"dataset": "first", "recipe": "bradley-terry", "name": "po lite"}, 400, None),
    ],
)
def test_what_cannot_be_started(
    dataset_version: DatasetVersion,
    client: Client,
    headers: dict[str, str],
    body: dict,
    status: int,
    pointer: str | None,
) -> None:
    answer = post(client, headers, **body)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    if pointer:
        assert answer.json()["pointer"].endswith(pointer)
    assert not TrainingRun.objects.exists()


def test_scopes_and_projects(
    dataset_version: DatasetVersion, client: Client, headers: dict[str, str]
) -> None:
    run = post(client, headers, dataset="first", recipe="bradley-terry").json()["run"]
    wrong_scope = bearer(dataset_version.project, Scope.REWARD)
    elsewhere = bearer(Project.objects.create(slug="elsewhere", name="Elsewhere"), Scope.TRAIN)
    for path in (RUNS, f"/api/v1/runs/{run}", "/api/v1/projects/desk/models"):
        assert client.get(path, headers=wrong_scope).status_code == 403
        assert client.get(path, headers=elsewhere).status_code == 404
    assert client.post(f"/api/v1/runs/{run}/cancel", headers=elsewhere).status_code == 404
    assert TrainingRun.objects.get().state == "queued"


def test_a_run_that_goes_on_from_a_model(
    dataset_version: DatasetVersion, client: Client, headers: dict[str, str]
) -> None:
    assert (
        post(client, headers, dataset="first", recipe={"label_smoothing": child.COMPLETE}).status_code == 202
    )
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    on = post(client, headers, dataset="first", recipe="bradley-terry", parent="first@1")
    assert (on.status_code, on.json()["parent"]) == (202, "desk/first@1")
    for wrong, status, said in (
        ("first@9", 404, "There is no model desk/first@9"),
        ("elsewhere/first@1", 400, "belongs to the project elsewhere"),
        ("first@@", 400, "is no name"),
    ):
        answer = post(client, headers, dataset="first", recipe="bradley-terry", parent=wrong)
        assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.json()


def test_events_and_log(dataset_version: DatasetVersion, client: Client, headers: dict[str, str]) -> None:
    pk = post(client, headers, dataset="first", recipe={"label_smoothing": child.REFUSE}).json()["run"]
    run = claim_next(TrainingRun)
    assert run is not None
    events = f"/api/v1/runs/{pk}/events"
    assert client.get(events, headers=headers).json() == {"items": [], "next": None}
    runner.execute(run)
    first = client.get(f"{events}?limit=2", headers=headers).json()
    rest = client.get(f"{events}?limit=2&cursor={first['next']}", headers=headers).json()
    assert [event["data"]["step"] for event in first["items"] + rest["items"]] == [1, 2, 3]
    assert rest["next"] is None and {event["attempt"] for event in rest["items"]} == {1}
    after = client.get(f"{events}?after={first['items'][0]['id']}", headers=headers).json()["items"]
    assert [event["data"]["step"] for event in after] == [2, 3]
    found = client.get(f"/api/v1/runs/{pk}/log", headers=headers).json()
    assert (found["state"], found["error"]) == ("failed", "The training split has one pair; freeze more.")
    assert "three steps done" in found["log"]


@pytest.mark.parametrize("path", ["events", "log"])
def test_events_and_log_of_another_project(
    dataset_version: DatasetVersion, client: Client, headers: dict[str, str], path: str
) -> None:
    pk = post(client, headers, dataset="first", recipe="bradley-terry").json()["run"]
    other = bearer(create_project(slug="other"), Scope.TRAIN)
    assert client.get(f"/api/v1/runs/{pk}/{path}", headers=other).status_code == 404
