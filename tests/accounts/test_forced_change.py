"""A password that someone else has seen opens one page: the one that changes it."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.services import create_project, create_user

SEEN, OWN = "seen by somebody else", "correct horse battery"


def test_nothing_opens_before_the_password_is_changed(db: None) -> None:
    user, _ = create_user(email="anna@example.org", password=SEEN, must_change_password=True)
    create_project(slug="desk", owner=user)
    client = Client()
    data = {"username": user.email, "password": SEEN, "next": "/p/desk/keys"}
    assert client.post(reverse("accounts:login"), data)["Location"] == "/p/desk/keys"
    for path in ("/", "/p/desk/keys", "/p/desk/people", "/account/sessions"):
        assert client.get(path)["Location"].startswith("/password?next=")
    post = client.post("/p/desk/keys/create", {"scopes": "train"}, headers={"HX-Request": "true"})
    assert post["HX-Redirect"].startswith("/password")
    there = client.get("/p/desk/keys")["Location"]
    assert "Someone else has seen the password" in client.get(there).content.decode()
    form = {"old_password": SEEN, "new_password1": SEEN, "new_password2": SEEN, "next": "/p/desk/keys"}
    same = client.post("/password", form)
    assert (same.status_code, "the password you have" in same.content.decode()) == (422, True)
    answer = client.post("/password", form | {"new_password1": OWN, "new_password2": OWN})
    assert answer["Location"] == "/p/desk/keys"
    assert client.get("/p/desk/keys").status_code == 200


def must_change(*options: Any) -> bool:
    call_command("create_user", "anna@example.org", *options)
    user = User.objects.get()
    marked = user.must_change_password
    user.delete()
    return marked


def test_the_command_marks_what_it_is_told_to(db: None, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(OWN + "\nanother line\n")
    assert not must_change("--json")  # scripts sign in with what it prints
    assert must_change("--change-password")
    assert not must_change("--password-file", file)
    call_command("create_user", "anna@example.org", "--password-file", file, "--verified")
    user = User.objects.get()
    assert user.check_password(OWN) and user.email_verified_at is not None
