"""create_project, create_user, create_api_key: their JSON keys, and their errors."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts import selectors
from apps.accounts.models import Membership, Project, User


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
