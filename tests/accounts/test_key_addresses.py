"""A key used from a network it was never used from is in the trail, and no call waits for that."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts import key_addresses as module
from apps.accounts import services
from apps.accounts.key_addresses import KeyAddressLog, network_of
from apps.accounts.models import AuditEvent, KeyAddress, Project, User


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> KeyAddressLog:
    """Of a process that has just started."""
    log = KeyAddressLog()
    monkeypatch.setattr("apps.accounts.auth.key_addresses", log)
    return log


@pytest.fixture
def secret(project: Project, people: dict[str, User]) -> str:
    return services.create_api_key(project=project, scopes=["ingest"], by=people["owner"])[1]


def call(secret: str, address: str = "192.0.2.1") -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    url = "/api/v1/projects/desk/trajectories"
    return Client().get(url, headers=headers, REMOTE_ADDR=address).status_code


def test_each_new_network_is_one_event(log: KeyAddressLog, secret: str) -> None:
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"):
        assert call(secret, address) == 200
    events = AuditEvent.objects.filter(verb="key.used-from-new-address").order_by("pk")
    assert [event.data["networks before"] for event in events] == [0, 1]
    assert {event.actor for event in events} == {secret[:12]}
    assert "192.0.2" not in str(list(events.values()))


def test_another_process_does_not_say_it_again(log: KeyAddressLog, secret: str) -> None:
    call(secret)
    other = KeyAddressLog()
    assert other.notice(secret[:12], "192.0.2.1") and other.flush() == 0
    assert not other.notice(secret[:12], "192.0.2.1")


def test_a_known_pair_costs_no_query(log: KeyAddressLog, secret: str) -> None:
    call(secret)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert not log.notice(secret[:12], "192.0.2.1")
    assert len(asked) == 0


def test_a_key_that_is_everywhere_fills_nothing(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NETWORKS", 3)
    log = KeyAddressLog()
    for number in range(9):
        log.notice(secret[:12], f"192.0.2.{number}")
    assert log.flush() == 3 == KeyAddress.objects.count()


def test_networks() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") == "2001:db8::/64"
    assert network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("") == network_of("unix") == ""
