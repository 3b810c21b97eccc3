"""Figures of models: for researchers, and for annotators and reviewers where an owner allows it."""

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, Project
from tests.factories import make_member

NODES = ["training/node/", "datasets/node/", "endpoints/node/", "alerts/node/"]


def client_of(project: Project, role: str) -> Client:
    client = Client()
    client.force_login(make_member(project, f"the-{role}@example.org", role))
    return client


@pytest.mark.parametrize("role", ["annotator", "reviewer"])
def test_an_owner_decides(project: Project, role: str) -> None:
    worker, owner = client_of(project, role), client_of(project, "owner")
    statuses = lambda: {worker.get(f"/p/desk/{node}").status_code for node in NODES}  # noqa: E731
    assert statuses() == {403}
    assert b"Training" not in worker.get("/p/desk/").content
    assert worker.post("/p/desk/people/models-shown", {"shown": "on"}).status_code == 403

    page = owner.post("/p/desk/people/models-shown", {"shown": "on"}, follow=True)
    assert "Annotators and reviewers see figures of models." in page.content.decode()
    assert statuses() == {200}
    assert b"Training" in worker.get("/p/desk/").content

    owner.post("/p/desk/people/models-shown", {})
    assert statuses() == {403}
    verbs = AuditEvent.objects.filter(verb__startswith="project.models_").order_by("pk")
    assert list(verbs.values_list("verb", flat=True)) == ["project.models_shown", "project.models_hidden"]


def test_a_researcher_who_looks_as_an_annotator_sees_none(project: Project) -> None:
    researcher = client_of(project, "researcher")
    assert researcher.get("/p/desk/training/node/").status_code == 200
    researcher.post("/p/desk/as-annotator")
    assert researcher.get("/p/desk/training/node/").status_code == 403
