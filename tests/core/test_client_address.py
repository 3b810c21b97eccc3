"""A client's address is what a proxy of ours says, and no one else."""

import ipaddress
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory
from starlette.requests import Request

from apps.core.environment import env_networks
from apps.core.http.client_address import SIGNED_HEADER, client_address, is_trusted_proxy, signed_address


def _scope(peer: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "client": (peer, 1234) if peer else None, "headers": raw}


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("198.51.100.9", ["203.0.113.5"], "198.51.100.9"),  # a stranger's word counts nothing
        ("10.0.0.1", ["203.0.113.5"], "203.0.113.5"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.5"], "203.0.113.5"),  # what is left of it the client wrote
        ("10.0.0.1", ["1.1.1.1", "203.0.113.5, 10.0.0.2"], "203.0.113.5"),  # two proxies, two lines
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["203.0.113.5, nonsense"], "10.0.0.1"),  # the last that is known
        ("10.0.0.1", ["203.0.113.5:4711"], "203.0.113.5"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["::ffff:203.0.113.5"], "203.0.113.5"),
        ("2001:db8:5::1", ["203.0.113.5"], "203.0.113.5"),
        ("10.0.0.1", [",".join(["10.0.0.2"] * 100_000)], "10.0.0.2"),
        (None, ["203.0.113.5"], ""),
        ("testclient", ["203.0.113.5"], "testclient"),
    ],
)
def test_only_trusted_proxies_are_believed(
    settings: Any, peer: str | None, forwarded: list[str], expected: str
) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("2001:db8:5::/48")]
    scope = _scope(peer, *(("X-Forwarded-For", value) for value in forwarded))
    assert client_address(scope) == expected
    assert client_address(Request(scope)) == expected
    meta = {"REMOTE_ADDR": peer or ""} | ({"HTTP_X_FORWARDED_FOR": ",".join(forwarded)} if forwarded else {})
    assert client_address(RequestFactory().get("/", **meta)) == expected


def test_nobody_is_trusted_unless_named(settings: Any) -> None:
    settings.TRUSTED_PROXIES = []
    assert client_address(_scope("127.0.0.1", ("X-Forwarded-For", "203.0.113.5"))) == "127.0.0.1"
    assert not is_trusted_proxy("127.0.0.1")


def test_rewards_believes_what_web_signed_and_nothing_else(settings: Any) -> None:
    settings.TRUSTED_PROXIES = []
    signed = signed_address("203.0.113.5")
    assert client_address(_scope("10.0.0.1", (SIGNED_HEADER, signed))) == "203.0.113.5"
    for forged in ("203.0.113.6", signed[:-1] + "x", "203.0.113.6" + signed[len("203.0.113.5") :]):
        assert client_address(_scope("10.0.0.1", (SIGNED_HEADER, forged))) == "10.0.0.1"


def test_the_setting_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_X", "10.1.2.3/8, ::1")
    assert env_networks("TOUCHSTONE_X") == [
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    ]
    monkeypatch.setenv("TOUCHSTONE_X", "10.0.0.0/8,proxy")
    with pytest.raises(ImproperlyConfigured, match="TOUCHSTONE_X has 'proxy'"):
        env_networks("TOUCHSTONE_X")
