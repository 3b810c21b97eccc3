"""Logging in by e-mail, in any case; out by POST; a new password."""

from collections.abc import Callable

from django.contrib.auth import get_user
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User

PASSWORD = "correct horse battery"


def test_the_address_is_taken_in_any_case(owner: User) -> None:
    client = Client()
    answer = client.post(reverse("accounts:login"), {"username": " OWNER@Example.org ", "password": PASSWORD})
    assert answer.status_code == 302
    assert get_user(client) == owner  # type: ignore[arg-type]


def test_a_wrong_password_and_an_unknown_address_read_alike(owner: User) -> None:
    pages = [
        Client().post(reverse("accounts:login"), {"username": email, "password": "wrong"}).content.decode()
        for email in ("owner@example.org", "nobody@example.org")
    ]
    for page in pages:
        assert "The e-mail address or the password is wrong" in page


def test_next_leads_back_but_never_elsewhere(owner: User) -> None:
    for target, lands in (("/p/desk/keys", "/p/desk/keys"), ("https://evil.example/", "/")):
        data = {"username": owner.email, "password": PASSWORD, "next": target}
        assert Client().post(reverse("accounts:login"), data)["Location"] == lands


def test_logout_is_by_post(as_: Callable[[str], Client]) -> None:
    client = as_("owner")
    assert client.get(reverse("accounts:logout")).status_code == 405
    assert client.post(reverse("accounts:logout")).status_code == 302
    assert client.get(reverse("accounts:home")).status_code == 302


def test_a_new_password_replaces_the_old_one(as_: Callable[[str], Client], people: dict[str, User]) -> None:
    data = {
        "old_password": PASSWORD,
        "new_password1": "a longer new secret",
        "new_password2": "a longer new secret",
    }
    assert as_("owner").post(reverse("accounts:password-change"), data).status_code == 302
    people["owner"].refresh_from_db()
    assert people["owner"].check_password("a longer new secret")
    assert "/login" in as_("anonymous").get(reverse("accounts:password-change"))["Location"]


def test_a_form_without_its_token_is_told_so(owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post(reverse("accounts:login"), {"username": owner.email, "password": PASSWORD})
    assert answer.status_code == 403
    assert "This form is too old" in answer.content.decode()
