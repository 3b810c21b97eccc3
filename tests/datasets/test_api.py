"""Datasets over HTTP."""

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.datasets.models import DatasetVersion
from apps.datasets.tasks import advance_dataset_versions
from tests.datasets.feedback import freeze

BASE = "/api/v1/projects/desk/datasets"


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_api_key(project=project, scopes=[Scope.TRAIN])[1]}"}


def post(client: Client, headers: dict[str, str], **body: Any) -> Any:
    return client.post(BASE, json.dumps(body), content_type="application/json", headers=headers)


@pytest.mark.django_db(transaction=True)
def test_frozen_by_a_worker(judged: Project, client: Client, headers: dict[str, str]) -> None:
    once = headers | {"Idempotency-Key": "one"}
    answers = [post(client, once, name="first", test_tasks=["task-1"]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert (answers[0].json()["state"], answers[0].json()["hash"]) == ("queued", None)
    assert DatasetVersion.objects.count() == 1
    advance_dataset_versions()
    found = client.get(f"{BASE}/first", headers=headers).json()
    assert (found["name"], found["state"], found["records"]) == (
        "desk/first@1",
        "succeeded",
        {"pairwise": 12},
    )
    assert (found["splits"]["test"], found["usable_pairs"]) == (1, 12)
    assert client.get(BASE, headers=headers).json() == {"items": [found], "next": None}
    exported = client.get(f"{BASE}/first@1/export?format=trl&split=test", headers=headers)
    assert len(b"".join(exported.streaming_content).splitlines()) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/name"),
        ({"name": "x", "kinds": ["thumbs"]}, 400, None),
        ({"name": "x", "since": "yesterday"}, 400, None),
        ({"name": "po lite"}, 400, None),
    ],
)
def test_what_cannot_be_frozen(
    judged: Project, client: Client, headers: dict[str, str], body: dict, status: int, pointer: str | None
) -> None:
    answer = post(client, headers, **body)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    if pointer:
        assert answer.json()["pointer"] == pointer
    assert not DatasetVersion.objects.exists()


def test_not_there_not_its_scope_not_its_project(
    judged: Project, client: Client, headers: dict[str, str]
) -> None:
    assert client.get(f"{BASE}/none", headers=headers).status_code == 404
    freeze(judged)
    assert client.get(f"{BASE}/first@7", headers=headers).status_code == 404
    _, secret = create_api_key(project=judged, scopes=[Scope.REWARD])
    assert client.get(BASE, headers={"Authorization": f"Bearer {secret}"}).status_code == 403
    other = Project.objects.create(slug="other", name="Other")
    _, secret = create_api_key(project=other, scopes=[Scope.TRAIN])
    for path in (BASE, f"{BASE}/first", f"{BASE}/first/export"):
        assert client.get(path, headers={"Authorization": f"Bearer {secret}"}).status_code == 404
