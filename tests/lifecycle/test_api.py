"""Retention, archiving and deletion over the JSON API, by keys of a member and of a service account."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.lifecycle.models import ProjectDeletion, RetentionRule, RetentionRun
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from tests.factories import make_member

URL = "/api/v1/projects/desk"


class Api:
    def __init__(self, secret: str) -> None:
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})

    def __call__(self, method: str, path: str = "", body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, URL + path, data, content_type="application/json")


@pytest.fixture
def api(project: Project) -> Api:
    owner = make_member(project, "owner@example.org", Role.OWNER)
    return Api(create_api_key(project=project, scopes=[Scope.ADMIN], name="admin", by=owner)[1])


def bring(project: Project, count: int, *, days_old: int) -> None:
    lines = [
        json.dumps({"task": {"id": f"t{n}"}, "messages": [{"role": "assistant", "content": f"Answer {n}"}]})
        for n in range(count)
    ]
    import_trajectories(project=project, stream=io.BytesIO("\n".join(lines).encode()), by=None)
    Trajectory.objects.filter(project=project).update(created_at=timezone.now() - timedelta(days=days_old))


def test_rules_are_previewed_set_and_read(project: Project, api: Api) -> None:
    bring(project, 3, days_old=40)
    rules = api("GET", "/retention").json()
    assert rules["trajectory_days"] is None and rules["would_delete"]["trajectories"] == 0
    seen = api("PUT", "/retention", {"trajectory_days": 30, "preview": True})
    assert seen.status_code == 200 and seen.json()["would_delete"]["trajectories"] == 3
    assert not RetentionRule.objects.exists() and not RetentionRun.objects.exists()
    saved = api("PUT", "/retention", {"trajectory_days": 30, "sample_days": 7}).json()
    assert (saved["trajectory_days"], saved["sample_days"], saved["export_days"]) == (30, 7, None)
    assert saved["would_delete"]["trajectories"] == 3 and RetentionRun.objects.count() == 1
    assert api("GET", "/retention").json()["trajectory_days"] == 30
    wrong = api("PUT", "/retention", {"trajectory_days": 0})
    assert wrong.status_code == 422 and "trajectory_days" in wrong.content.decode()
    assert api("PUT", "/retention", {"days": 3}).status_code == 422
    event = AuditEvent.objects.get(verb="retention.changed")
    assert event.data["trajectory_days"] == 30


def test_a_project_is_archived_and_opened_again(project: Project, api: Api) -> None:
    assert api("GET").json()["archived"] is None
    assert api("POST", "/archive").json()["archived"] is not None
    assert api("PATCH", "", {"name": "Other"}).status_code == 409
    assert api("PUT", "/retention", {"trajectory_days": 30}).status_code == 409
    assert api("GET").json()["archived"] is not None  # reading goes on
    assert api("POST", "/restore").json()["archived"] is None
    assert api("PATCH", "", {"name": "Other"}).status_code == 200


def test_deletion_needs_the_name_and_revokes_the_key(project: Project, api: Api) -> None:
    assert api("POST", "/deletion", {}).status_code == 422
    wrong = api("POST", "/deletion", {"name": "dusk"})
    assert wrong.status_code == 400 and "desk" in wrong.json()["detail"]
    assert not ProjectDeletion.objects.exists()
    gone = api("POST", "/deletion", {"name": "desk"})
    assert (gone.status_code, gone.json()) == (202, {"project": "desk", "state": "queued"})
    assert ProjectDeletion.objects.get().requested_by.email == "owner@example.org"  # type: ignore[union-attr]
    assert api("GET").status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/retention"),
        ("PUT", "/retention"),
        ("POST", "/archive"),
        ("POST", "/restore"),
        ("POST", "/deletion"),
    ],
)
def test_other_scopes_and_other_projects_are_refused(
    method: str, path: str, project: Project, api: Api
) -> None:
    owner = make_member(project, "second@example.org", Role.OWNER)
    narrow = Api(create_api_key(project=project, scopes=[Scope.TRAIN, Scope.INGEST], name="n", by=owner)[1])
    body = {"name": "desk"} if path == "/deletion" else {} if method == "PUT" else None
    assert narrow(method, path, body).status_code == 403
    other = Project.objects.create(slug="other", name="Other")
    foreign = make_member(other, "o@example.org", Role.OWNER)
    key = Api(create_api_key(project=other, scopes=[Scope.ADMIN], name="o", by=foreign)[1])
    assert key(method, path, body).status_code == 404
    project.refresh_from_db()
    assert project.archived_at is None and not ProjectDeletion.objects.exists()


def test_lists_have_the_number_within_the_project(project: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    bring(other, 5, days_old=0)
    bring(project, 2, days_old=0)
    owner = make_member(project, "owner@example.org", Role.OWNER)
    reader = Api(create_api_key(project=project, scopes=[Scope.INGEST], name="r", by=owner)[1])
    assert sorted(row["number"] for row in reader("GET", "/trajectories").json()["items"]) == [1, 2]
