"""Sessions end when idle, at a day, and by hand; their owner sees them all."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import AuditEvent, User, UserSession
from apps.accounts.pseudonyms import person_pseudonym
from apps.accounts.sessions import device_of, forget_ended_sessions
from tests.accounts.conftest import PASSWORD

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"


def browser(user: User, agent: str = FIREFOX, address: str = "192.0.2.1") -> Client:
    client = Client(HTTP_USER_AGENT=agent, REMOTE_ADDR=address)
    data = {"username": user.email, "password": PASSWORD}
    assert client.post(reverse("accounts:login"), data).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("accounts:session-list")).status_code == 200


def moved(monkeypatch: pytest.MonkeyPatch, **by: float) -> None:
    later = timezone.now() + timedelta(**by)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)


def test_a_session_ends_when_nobody_was_there(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(owner)
    moved(monkeypatch, hours=11.9)
    assert is_in(client)
    moved(monkeypatch, hours=11.9)  # since it was last seen
    assert is_in(client)
    moved(monkeypatch, hours=12.1)
    assert not is_in(client)
    forget_ended_sessions()
    assert not UserSession.objects.exists()


def test_a_session_ends_at_a_day_however_busy(
    owner: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.SESSION_DAYS = 1
    client = browser(owner)
    for _ in range(2):
        moved(monkeypatch, hours=11)
        assert is_in(client)
    moved(monkeypatch, hours=1.9)
    assert is_in(client)
    moved(monkeypatch, hours=0.2)
    assert not is_in(client)


def test_a_page_that_polls_keeps_no_session_alive(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(owner)
    moved(monkeypatch, hours=11)
    assert client.get(reverse("accounts:session-list"), headers={"HX-Request": "true"}).status_code == 200
    moved(monkeypatch, hours=2)
    assert not is_in(client)


def test_the_page_shows_where_one_is_and_ends_one(owner: User) -> None:
    here, there = browser(owner), browser(owner, CHROME, "198.51.100.7")
    there.get(reverse("accounts:home"))
    page = here.get(reverse("accounts:session-list"))
    text = page.content.decode()
    for words in ("Firefox on Linux", "Chrome on Windows", "192.0.2.1", "198.51.100.7", "this one"):
        assert words in text
    assert here.session.session_key not in text and there.session.session_key not in text
    (other,) = [row for row in page.context["sessions"] if not row.is_this]
    assert here.post(reverse("accounts:session-end", args=[other.mark])).status_code == 302
    assert is_in(here) and not is_in(there)
    assert here.post(reverse("accounts:session-end", args=[other.mark])).status_code == 404


def test_nobody_ends_anothers_session(owner: User, people: dict[str, User]) -> None:
    hers = browser(owner)
    (row,) = hers.get(reverse("accounts:session-list")).context["sessions"]
    other = browser(people["stranger"])
    assert other.post(reverse("accounts:session-end", args=[row.mark])).status_code == 404
    assert is_in(hers)


def test_signing_out_everywhere(owner: User, people: dict[str, User]) -> None:
    here, there, outsider = browser(owner), browser(owner), browser(people["stranger"])
    assert here.post(reverse("accounts:session-end-all")).status_code == 302
    assert not is_in(here) and not is_in(there) and is_in(outsider)
    assert AuditEvent.objects.filter(verb="sessions.ended", target=person_pseudonym(owner.email)).exists()


def test_a_new_password_ends_the_others(owner: User) -> None:
    here, there = browser(owner), browser(owner)
    new = "a longer new secret"
    data = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post(reverse("accounts:password-change"), data).status_code == 302
    assert is_in(here) and not is_in(there)
    assert UserSession.objects.filter(user=owner).count() == 1


def test_who_is_signed_out_in_the_middle_comes_back_to_the_page(
    owner: User, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(owner)
    moved(monkeypatch, hours=13)
    answer = client.post(
        "/p/desk/people/add",
        {},
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/p/desk/people"},
    )
    assert answer["HX-Redirect"] == "/login?next=%2Fp%2Fdesk%2Fpeople"


@pytest.mark.parametrize(("agent", "words"), [("", "Unknown device"), ("curl/8", "Unknown device")])
def test_devices_nobody_knows(agent: str, words: str) -> None:
    assert device_of(agent) == words


def test_a_header_of_any_kind_breaks_nothing(owner: User) -> None:
    client = browser(owner, agent="x\0" * 5000, address="not an address")
    assert is_in(client)
