"""What a key is held to, by a clock of the test's own."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts import key_gate, keys
from apps.accounts.key_gate import HeldTo, KeyGate, OverKeyLimit, check_address
from apps.accounts.models import Project, User
from apps.core.errors import Forbidden


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(clock: Clock) -> KeyGate:
    return KeyGate(clock)


def test_requests_come_back_over_a_minute(gate: KeyGate, clock: Clock) -> None:
    limits = HeldTo(requests_per_minute=3)
    for _ in range(3):
        gate.admit("k", limits)
    gate.admit("other", limits)
    with pytest.raises(OverKeyLimit, match="3 requests per minute") as error:
        gate.admit("k", limits)
    assert (error.value.retry_after, error.value.status) == (20, 429)
    clock.now += 20
    gate.admit("k", limits)
    with pytest.raises(OverKeyLimit):
        gate.admit("k", limits)
    clock.now += 3600
    for _ in range(3):  # no more than the limit is saved up
        gate.admit("k", limits)
    with pytest.raises(OverKeyLimit):
        gate.admit("k", limits)


def test_tokens_are_paid_for_afterwards(gate: KeyGate, clock: Clock) -> None:
    limits = HeldTo(tokens_per_minute=100)
    gate.charge("k", limits, 250)  # one that is larger than the limit has its turn
    with pytest.raises(OverKeyLimit, match="100 tokens per minute") as error:
        gate.charge("k", limits, 1)
    assert error.value.retry_after == 91
    with pytest.raises(OverKeyLimit):
        gate.admit("k", limits)
    clock.now += 91
    gate.charge("k", limits, 1)


def test_tokens_of_the_day_are_the_tables_and_what_came_since(gate: KeyGate, clock: Clock) -> None:
    limits = HeldTo(tokens_per_day=100)
    gate.learn({"k": 40}, before=clock.now)
    gate.charge("k", limits, 50)
    gate.admit("k", limits)
    clock.now += 10
    gate.learn({"k": 90}, before=clock.now - 5)  # it is in the table now
    gate.charge("k", limits, 10)
    with pytest.raises(OverKeyLimit, match="tokens per day") as error:
        gate.admit("k", limits)
    now = timezone.now()
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    assert abs(error.value.retry_after - (midnight - now).total_seconds()) < 5


def test_what_is_left_is_said_in_headers(gate: KeyGate) -> None:
    limits = HeldTo(requests_per_minute=10, tokens_per_day=50)
    gate.admit("k", limits)
    gate.charge("k", limits, 20)
    found = gate.headers("k", limits)
    assert found["RateLimit-Policy"] == '"requests_per_minute";q=10;w=60, "tokens_per_day";q=50;w=86400'
    assert found["RateLimit"].startswith('"requests_per_minute";r=9;t=6, "tokens_per_day";r=30;t=')
    assert gate.headers("k", HeldTo()) == {}


@pytest.mark.django_db
def test_a_keys_own_limits_come_before_the_settings(settings, project: Project) -> None:
    settings.KEY_REQUESTS_PER_MINUTE, settings.KEY_TOKENS_PER_DAY = 60, 1000
    limits = keys.KeyLimits(tokens_per_day=0, tokens_per_minute=5, allowed_networks=("10.0.0.0/8",))
    key, _ = keys.create_api_key(project=project, scopes=["reward"], limits=limits)
    found = key_gate.held_to(key)
    assert (found.requests_per_minute, found.tokens_per_minute, found.tokens_per_day) == (60, 5, 0)
    check_address(found.networks, "10.1.2.3")
    check_address((), "")
    for address in ("11.1.2.3", "", "2001:db8::1"):
        with pytest.raises(Forbidden) as error:
            check_address(found.networks, address)
        assert "10.0" not in error.value.message


def test_the_json_api_holds_keys_to_their_limits(project: Project, owner: User, monkeypatch) -> None:
    monkeypatch.setattr("apps.accounts.auth.gate", KeyGate(Clock()))
    limits = keys.KeyLimits(requests_per_minute=2)
    _, secret = keys.create_api_key(project=project, scopes=["train"], by=owner, limits=limits)

    def call(**headers: str):
        sent = {"Authorization": f"Bearer {secret}", **headers}
        return Client().get("/api/v1/projects/desk/datasets", headers=sent)

    assert call().status_code == 200
    sent = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "a"}  # read twice, counted once
    posted = Client().post(
        "/api/v1/projects/desk/datasets", data="{}", content_type="application/json", headers=sent
    )
    assert posted.status_code == 422
    refused = call()
    assert (refused.status_code, refused["Content-Type"]) == (429, "application/problem+json")
    assert refused["Retry-After"] == "30"
    assert (refused.json()["limit"], refused.json()["limit_name"]) == (2, "requests_per_minute")
    again = Client().post(
        "/api/v1/projects/desk/datasets", data="{}", content_type="application/json", headers=sent
    )
    assert (again.status_code, again["Content-Type"]) == (429, "application/problem+json")


def test_the_json_api_holds_keys_to_their_networks(project: Project, owner: User) -> None:
    limits = keys.KeyLimits(allowed_networks=("203.0.113.0/24",))
    _, secret = keys.create_api_key(project=project, scopes=["train"], by=owner, limits=limits)
    headers = {"Authorization": f"Bearer {secret}"}
    url = "/api/v1/projects/desk/datasets"
    assert Client(REMOTE_ADDR="203.0.113.9").get(url, headers=headers).status_code == 200
    refused = Client(REMOTE_ADDR="198.51.100.9").get(url, headers=headers)
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert "203.0" not in refused.content.decode()
    forged = Client(REMOTE_ADDR="198.51.100.9").get(url, headers=headers | {"X-Forwarded-For": "203.0.113.9"})
    assert forged.status_code == 403
