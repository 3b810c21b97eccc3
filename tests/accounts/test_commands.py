"""create_project, create_user, create_api_key: their JSON keys, and their errors."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts import selectors
from apps.accounts.models import AuditEvent, Membership, Project, User
from tests.factories import signed_in


def run(*args: str) -> dict[str, Any]:
    out = StringIO()
    call_command(*args, "--json", stdout=out, stderr=StringIO())
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def test_from_nothing_to_a_key(db: None) -> None:
    user = run("create_user", "Anna@Example.org")
    assert user.keys() == {"email", "password"}
    assert User.objects.get(email="anna@example.org").check_password(user["password"])
    assert run("create_project", "desk", "--owner", "anna@example.org") == {"slug": "desk"}
    assert Membership.objects.get().role == "owner"
    made = run("create_api_key", "desk", "--scopes", "reward, ingest", "--days", "3")
    assert made.keys() == {"key", "prefix", "scopes", "owner", "expires_at"}
    key = selectors.api_key_for(made["key"])
    assert key is not None
    assert (key.prefix, key.scopes) == (made["prefix"], ["reward", "ingest"])
    assert key.expires_at is not None


def test_a_user_is_not_made_when_her_project_is_missing(db: None) -> None:
    with pytest.raises(CommandError, match="no project nowhere; make one with `create_project nowhere`"):
        run("create_user", "anna@example.org", "--project", "nowhere")
    assert not User.objects.exists()
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("create_user", "anna@example.org", "--project", "nowhere", stdout=said, stderr=said)
    assert "Made" not in said.getvalue()


def test_errors_are_sentences(db: None) -> None:
    run("create_project", "desk")
    for args, words in (
        (("create_project", "desk"), "already a project desk"),
        (("create_project", "other", "--owner", "who@example.org"), "no user who@example.org"),
        (("create_api_key", "desk", "--scopes", "rewards"), "rewards is no scope"),
        (("create_api_key", "desk", "--scopes", "reward", "--days", "-1"), "expired already"),
    ):
        with pytest.raises(CommandError, match=words):
            run(*args)
    assert Project.objects.count() == 1


def test_a_user_who_exists_is_added_to_a_project(db: None) -> None:
    run("create_project", "desk")
    run("create_user", "anna@example.org")
    added = run("add_member", "desk", "Anna@Example.org", "--role", "reviewer")
    assert added == {"project": "desk", "email": "anna@example.org", "role": "reviewer", "before": None}
    assert run("add_member", "desk", "anna@example.org", "--role", "owner")["before"] == "reviewer"
    assert Membership.objects.get().role == "owner"
    verbs = AuditEvent.objects.filter(project__slug="desk").order_by("pk").values_list("verb", "actor")
    assert list(verbs)[1:] == [("member.added", "command line"), ("member.role-changed", "command line")]
    for args, words in (
        (("add_member", "desk", "anna@example.org", "--role", "annotator"), "the only owner"),
        (("add_member", "desk", "who@example.org"), "no user who@example.org"),
        (("add_member", "nowhere", "anna@example.org"), "no project nowhere"),
    ):
        with pytest.raises(CommandError, match=words):
            run(*args)
    run("close_user", "anna@example.org")
    with pytest.raises(CommandError, match="is closed"):
        run("add_member", "desk", "anna@example.org")


def test_a_password_is_reset(db: None, tmp_path: Path) -> None:
    run("create_user", "anna@example.org")
    anna = User.objects.get()
    browser = signed_in(anna)
    assert browser.get("/account/sessions").status_code == 200
    reset = run("reset_password", "ANNA@example.org")
    assert reset.keys() == {"email", "password", "sessions"} and reset["sessions"] == 1
    anna.refresh_from_db()
    assert anna.check_password(reset["password"]) and not anna.must_change_password
    assert browser.get("/account/sessions").status_code == 302, "the session has ended"
    event = AuditEvent.objects.get(verb="password.reset")
    assert event.actor == "command line" and reset["password"] not in str(event.data)

    file = tmp_path / "password"
    file.write_text("seven quiet herons\nmore\n")
    run("reset_password", "anna@example.org", "--password-file", str(file), "--change-password")
    anna.refresh_from_db()
    assert anna.check_password("seven quiet herons") and anna.must_change_password
    file.write_text("short")
    for args, words in (
        (("reset_password", "who@example.org"), "no user who@example.org"),
        (("reset_password", "anna@example.org", "--password-file", str(file)), "too short"),
        (("reset_password", "anna@example.org", "--password-file", str(tmp_path)), "Nothing was changed"),
    ):
        with pytest.raises(CommandError, match=words):
            run(*args)
    anna.refresh_from_db()
    assert anna.check_password("seven quiet herons")
    run("close_user", "anna@example.org")
    with pytest.raises(CommandError, match="is closed"):
        run("reset_password", "anna@example.org")
