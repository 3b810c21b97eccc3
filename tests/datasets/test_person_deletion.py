"""Closing and deleting an account: what ends, what stays, and that nothing says any more who it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from apps.accounts import audit_chain, leaving, services
from apps.accounts.models import ApiKey, AuditEvent, Invitation, Project, Role, User
from apps.annotation.account_closing import ERASED
from apps.annotation.models import Annotation, Annotator, Assignment, Comment, Item
from apps.core.errors import Conflict, DomainError
from apps.datasets.models import DatasetVersion
from tests.datasets.feedback import freeze
from tests.erased import database_places

pytestmark = pytest.mark.usefixtures("own_home")
EMAIL, NAME = "leaver@example.org", "Leonora Leaver"


@pytest.fixture
def leaver(judged: Project) -> User:
    """Someone with one of everything: judgements, comments, a session, a key, an invitation, a frozen dataset."""
    user, _ = services.create_user(email=EMAIL, password="a good long password", name=NAME)
    services.set_member(project=judged, user=user, role=Role.RESEARCHER, by=None)
    annotator = Annotator.objects.filter(project=judged).order_by("pk").first()
    Annotator.objects.filter(pk=annotator.pk).update(user=user, name=EMAIL)
    annotation = Annotation.objects.filter(assignment__annotator=annotator).first()
    run = annotation.assignment.item.trajectories.first()
    Comment.objects.create(annotation=annotation, trajectory=run, text="It was rude.", quote="no")
    services.create_api_key(project=judged, scopes=["ingest"], by=user, name="mine")
    Invitation.objects.create(
        project=judged, role="annotator", email=EMAIL, prefix="tsi_1", hash="0" * 64, created_by=user,
        expires_at=judged.created_at,
    )  # fmt: skip
    freeze(judged)
    client = Client()
    client.post("/login", {"username": EMAIL, "password": "wrong"})
    client.post("/login", {"username": EMAIL, "password": "a good long password"})
    return user


def test_deleted_nobody_finds_who_it_was(leaver: User, judged: Project) -> None:
    before = Annotation.objects.count()
    assert database_places(EMAIL, NAME)
    leaving.delete_user(user=leaver, by=None, reason=f"{NAME} ({EMAIL}) asked")
    assert database_places(EMAIL, NAME, "Leonora") == []
    assert Annotation.objects.count() == before
    assert Comment.objects.filter(text="It was rude.").exists()
    assert Annotator.objects.filter(project=judged, name__startswith="annotator-", user=None).count() == 1
    assert DatasetVersion.objects.get(project=judged).withdrawn_at is not None
    assert audit_chain.verify().faults == []
    told = AuditEvent.objects.get(verb="user.deleted")
    assert told.target.startswith("person-") and told.data["reason"] == "[the person] ([the person]) asked"


def test_exports_afterwards_name_the_pseudonym(leaver: User, judged: Project, tmp_path: Path) -> None:
    leaving.delete_user(user=leaver, by=None, reason="asked")
    call_command("export_feedback", "desk", "--out", str(tmp_path / "out.jsonl"))
    text = (tmp_path / "out.jsonl").read_text()
    assert "annotator-" in text and EMAIL not in text


def test_comments_are_erased_by_request(leaver: User) -> None:
    leaving.delete_user(user=leaver, by=None, reason="asked", erase_comments=True)
    comment = Comment.objects.get(text=ERASED)
    assert comment.quote == ""


def test_the_only_owner_of_a_project_is_not_deleted(leaver: User) -> None:
    services.create_project(slug="theirs", owner=leaver)
    with pytest.raises(Conflict, match="only owner of theirs"):
        leaving.delete_user(user=leaver, by=None, reason="asked")
    with pytest.raises(DomainError, match="Give a reason"):
        leaving.delete_user(user=leaver, by=None, reason=" ")


def test_closing_ends_every_way_in_and_frees_what_is_held(leaver: User, judged: Project) -> None:
    client = Client()
    client.force_login(leaver)
    assert client.get("/account/sessions").status_code == 200
    mine = Assignment.objects.filter(annotator__user=leaver).first()
    Item.objects.filter(pk=mine.item_id).update(completed_count=0)
    Assignment.objects.filter(pk=mine.pk).update(state="locked", lock_expires_at=judged.created_at)
    done = leaving.close_account(user=leaver, by=None, reason="left")
    assert done["sessions"] >= 1 and done["keys"] == 1 and done["items released"] == 1
    assert client.get("/account/sessions").status_code == 302
    assert not ApiKey.objects.filter(owner_user=leaver, revoked_at=None).exists()
    assert not Assignment.objects.filter(annotator__user=leaver, state__in=["locked", "assigned"]).exists()
    assert Client().login(username=EMAIL, password="a good long password") is False
    assert leaving.close_account(user=leaver, by=None) == {}
    leaving.reopen_account(user=leaver, by=None)
    assert client.get("/account/sessions").status_code == 302  # the old session stays ended
    assert not ApiKey.objects.filter(owner_user=leaver, revoked_at=None).exists()


def test_closing_the_last_owner_says_which_projects_have_none(leaver: User) -> None:
    services.create_project(slug="theirs", owner=leaver)
    leaving.close_account(user=leaver, by=None)
    assert AuditEvent.objects.get(verb="user.closed").data["projects without an owner"] == ["theirs"]


def test_the_page_deletes_ones_own_account(leaver: User) -> None:
    client = Client()
    client.force_login(leaver)
    assert "annotator-7" in client.get("/account/delete").content.decode()
    wrong = client.post("/account/delete", {"email": EMAIL, "password": "guess"})
    assert (wrong.status_code, User.objects.filter(pk=leaver.pk).exists()) == (422, True)
    wrong = client.post("/account/delete", {"email": "other@example.org", "password": "a good long password"})
    assert wrong.status_code == 422
    done = client.post("/account/delete", {"email": EMAIL, "password": "a good long password"})
    assert (done.status_code, User.objects.filter(pk=leaver.pk).exists()) == (302, False)
    assert client.get("/account/delete").status_code == 302
    assert database_places(EMAIL, NAME) == []


def test_commands(leaver: User, capsys: Any) -> None:
    call_command("close_user", EMAIL, "--reason", "left")
    assert not User.objects.get(pk=leaver.pk).is_active
    call_command("close_user", EMAIL, "--reopen")
    assert User.objects.get(pk=leaver.pk).is_active
    capsys.readouterr()
    call_command("delete_user", EMAIL, "--reason", "asked", "--json")
    assert json.loads(capsys.readouterr().out)["names hidden"] == 1
