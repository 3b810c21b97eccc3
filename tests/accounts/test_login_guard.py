"""Guessing is slowed down by name, by address, and by both; who is known still gets in."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.login_guard import CAP_SECONDS, DEVICE_COOKIE, Subject, begin_attempt, limit_for
from apps.accounts.models import GuessCounter, User
from apps.core.errors import TooManyRequests
from tests.accounts.conftest import PASSWORD


@pytest.fixture(autouse=True)
def few(settings: Any) -> None:
    settings.LOGIN_FAILURES = 2


def log_in(client: Client, email: str, password: str, address: str = "192.0.2.1", **extra: Any) -> int:
    data = {"username": email, "password": password}
    return client.post(reverse("accounts:login"), data, REMOTE_ADDR=address, **extra).status_code


def open_again() -> None:
    GuessCounter.objects.update(blocked_until=timezone.now() - timedelta(seconds=1))


def guess_from_everywhere(email: str, count: int = 8) -> list[int]:
    return [log_in(Client(), email, "guess", address=f"198.51.100.{number}") for number in range(count)]


def test_one_name_from_many_addresses_is_slowed_down(owner: User) -> None:
    # Before: only the pair of name and address was counted, so each new address had ten guesses of its own.
    assert guess_from_everywhere(owner.email) == [200] * 7 + [429]
    # A stranger with the password too.
    assert log_in(Client(), owner.email, PASSWORD, address="203.0.113.9") == 429


def test_many_names_from_one_address_are_slowed_down(db: None) -> None:
    statuses = [log_in(Client(), f"name{number}@example.org", "guess") for number in range(22)]
    assert statuses == [200] * 21 + [429]


def test_the_owner_of_an_attacked_name_gets_in_with_their_browser(owner: User) -> None:
    known = Client()
    assert log_in(known, owner.email, PASSWORD) == 302
    cookie = known.cookies[DEVICE_COOKIE]
    assert cookie["httponly"] and cookie["samesite"] == "Lax" and owner.email not in cookie.value
    known.post(reverse("accounts:logout"))
    guess_from_everywhere(owner.email)
    assert log_in(Client(), owner.email, PASSWORD, address="192.0.2.1") == 429
    assert log_in(known, owner.email, PASSWORD, address="203.0.113.7") == 302


def test_the_owner_gets_in_from_an_address_they_are_signed_in_from(owner: User) -> None:
    at_work = Client(REMOTE_ADDR="192.0.2.1")
    assert log_in(at_work, owner.email, PASSWORD) == 302
    at_work.get("/")
    guess_from_everywhere(owner.email)
    assert log_in(Client(), owner.email, PASSWORD, address="203.0.113.7") == 429
    assert log_in(Client(), owner.email, PASSWORD, address="192.0.2.1") == 302


def test_a_colleague_who_guesses_at_the_same_address_locks_nobody_out(owner: User) -> None:
    known = Client()
    assert log_in(known, owner.email, PASSWORD) == 302
    known.post(reverse("accounts:logout"))
    for number in range(30):
        log_in(Client(), f"name{number % 7}@example.org", "guess")
        log_in(Client(), owner.email, "guess")
    assert log_in(Client(), owner.email, "guess") == 429
    assert log_in(known, owner.email, PASSWORD) == 302


def test_a_stolen_or_made_up_device_cookie_buys_few_guesses(owner: User, settings: Any) -> None:
    thief = Client()
    log_in(thief, owner.email, PASSWORD)
    thief.post(reverse("accounts:logout"))
    guess_from_everywhere(owner.email)
    statuses = [log_in(thief, owner.email, "guess", address="203.0.113.7") for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    made_up = Client()
    made_up.cookies[DEVICE_COOKIE] = "WyJ4IiwgInkiXQ:1a:forged"
    assert log_in(made_up, owner.email, PASSWORD, address="203.0.113.8") == 429


def test_the_pauses_double_up_to_a_quarter_of_an_hour(db: None) -> None:
    subject = Subject("login.pair", "somebody")
    pauses = []
    for _ in range(limit_for("login.pair").free + 14):
        begin_attempt(subject)
        until = GuessCounter.objects.get().blocked_until
        pauses.append(round((until - timezone.now()).total_seconds()) if until else 0)
        open_again()
    assert pauses == [0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900]
    assert max(pauses) == CAP_SECONDS
    GuessCounter.objects.update(updated_at=timezone.now() - timedelta(hours=25))
    begin_attempt(subject)
    assert GuessCounter.objects.get().failures == 1


@pytest.mark.django_db(transaction=True)
def test_guesses_at_the_same_time_are_all_counted() -> None:
    def guess(_: int) -> bool:
        try:
            begin_attempt(Subject("login.pair", "somebody"), Subject("login.name", "somebody"))
        except TooManyRequests:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as threads:
        allowed = sum(threads.map(guess, range(24)))
    assert allowed == limit_for("login.pair").free + 1


def test_a_right_password_takes_its_own_count_back(owner: User) -> None:
    for _ in range(30):
        client = Client()
        assert log_in(client, owner.email, PASSWORD) == 302
    assert not GuessCounter.objects.exists()


def test_a_forwarded_address_is_believed_from_known_proxies_only(owner: User, settings: Any) -> None:
    for number in range(3):
        log_in(Client(), owner.email, "guess", HTTP_X_FORWARDED_FOR=f"198.51.100.{number}")
    assert log_in(Client(), owner.email, "guess", HTTP_X_FORWARDED_FOR="198.51.100.77") == 429


def test_the_present_password_is_not_guessed_from_an_open_session(client: Client, owner: User) -> None:
    client.force_login(owner)
    data = {"new_password1": "a longer new secret", "new_password2": "a longer new secret"}
    url = reverse("accounts:password-change")
    statuses = [client.post(url, data | {"old_password": f"guess {n}"}).status_code for n in range(3)]
    assert statuses == [422, 422, 429]
    open_again()
    assert client.post(url, data | {"old_password": PASSWORD}).status_code == 302


def test_tokens_that_open_nothing_are_counted(client: Client, db: None) -> None:
    paths = [f"/{kind}/ts{kind[0]}_0000000{n}_guess" for n in range(5) for kind in ("join", "link")]
    statuses = [client.get(path).status_code for path in paths]
    assert statuses == [404] * 5 + [429] * 5


def test_keys_that_are_not_valid_are_counted_and_good_ones_never_refused(
    client: Client, project: Any
) -> None:
    from apps.accounts.services import create_api_key

    _, secret = create_api_key(project=project, scopes=["train"])
    url = "/api/v1/projects/desk/models"
    statuses = [client.get(url, headers={"Authorization": f"Bearer guess{n}"}).status_code for n in range(23)]
    assert statuses == [401] * 21 + [429] * 2
    answer = client.get(url, headers={"Authorization": "Bearer guess"})
    assert answer["Content-Type"] == "application/problem+json" and int(answer["Retry-After"]) >= 1
    assert client.get(url, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
