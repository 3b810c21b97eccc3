"""Logging in by e-mail, in any case; out by POST; a new password; and what stops someone who guesses."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user
from django.db import OperationalError
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import GuessCounter, User, UserSession

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


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(User, id="while it logs in"),  # last_login, after a new token was made
        pytest.param(UserSession, id="after it logged in"),  # what Django would answer with 400
    ],
)
def test_a_form_that_met_an_outage_can_be_sent_again(
    owner: User, monkeypatch: pytest.MonkeyPatch, model: type[Model]
) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    page = client.get(reverse("accounts:login")).content.decode()
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"username": owner.email, "password": PASSWORD, "csrfmiddlewaretoken": token}
    save = model.save

    def away(self: Model, *arguments: Any, **named: Any) -> None:
        if not named.get("force_insert"):
            raise OperationalError("the connection is lost")
        save(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(model, "save", away)
        assert client.post(reverse("accounts:login"), form).status_code == 503
    assert client.post(reverse("accounts:login"), form).status_code == 302


def test_who_was_logged_out_meanwhile_is_told_so(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(User, "save", lambda *_, **__: UserSession.objects.all().delete())
    answer = Client().post(reverse("accounts:login"), {"username": owner.email, "password": PASSWORD})
    assert answer.status_code == 400
    assert "You were logged out in another window" in answer.content.decode()


def _sign_in(client: Client, email: str, password: str, **extra: Any) -> int:
    return client.post(
        reverse("accounts:login"), {"username": email, "password": password}, **extra
    ).status_code


def test_guessing_is_stopped_in_words_for_that_name_and_address_only(
    client: Client, researcher: User, annotator: User, settings: Any
) -> None:
    settings.LOGIN_FAILURES = 2
    guesses = [_sign_in(client, researcher.email, f"guess {number}") for number in range(4)]
    assert guesses == [200, 200, 200, 429]  # the third was looked at, and closes the door
    answer = client.post(reverse("accounts:login"), {"username": researcher.email, "password": PASSWORD})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")
    assert "There were too many failed attempts. Try again in 2 seconds" in answer.content.decode()
    assert _sign_in(client, researcher.email, PASSWORD, REMOTE_ADDR="192.0.2.7") == 302
    assert _sign_in(Client(), annotator.email, PASSWORD) == 302


def test_after_the_pause_it_opens_again(client: Client, researcher: User, settings: Any) -> None:
    settings.LOGIN_FAILURES = 1
    assert [_sign_in(client, researcher.email, "guess") for _ in range(3)] == [200, 200, 429]
    GuessCounter.objects.update(blocked_until=timezone.now())
    assert _sign_in(client, researcher.email, PASSWORD) == 302


def test_one_slip_is_forgotten_with_the_right_password(
    client: Client, researcher: User, settings: Any
) -> None:
    settings.LOGIN_FAILURES = 1
    for _ in range(3):
        assert _sign_in(client, researcher.email, "slip") == 200
        assert _sign_in(client, researcher.email, PASSWORD) == 302
        client.logout()


@pytest.mark.parametrize(
    ("public", "secure"), [("https://rewards.example.org", True), ("http://127.0.0.1:8000", False)]
)
def test_cookies_are_secure_where_the_address_is(public: str, secure: bool) -> None:
    names = (
        "SESSION_COOKIE_SECURE",
        "CSRF_COOKIE_SECURE",
        "SESSION_COOKIE_HTTPONLY",
        "SESSION_COOKIE_SAMESITE",
    )
    script = f"from django.conf import settings; print(*(getattr(settings, name) for name in {names}))"
    environment = os.environ | {
        "TOUCHSTONE_PUBLIC_URL": public,
        "DJANGO_SETTINGS_MODULE": "apps.config.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(secure), str(secure), "True", "Lax"]
