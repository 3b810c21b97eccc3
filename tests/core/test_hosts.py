"""By which scheme a request came is a proxy's to say, where the proxies are named."""

import ipaddress
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.testclient import TestClient

from apps.core.http.allowed_hosts import KnownHosts


async def seen(scope: Any, receive: Any, send: Any) -> None:
    await JSONResponse(dict(Request(scope).headers))(scope, receive, send)


@pytest.mark.parametrize(
    ("networks", "peer", "believed"),
    [([], "203.0.113.5", True), (["10.0.0.0/8"], "203.0.113.5", False), (["10.0.0.0/8"], "10.0.0.1", True)],
)
def test_who_says_that_it_was_https(settings: Any, networks: list[str], peer: str, believed: bool) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network(each) for each in networks]
    client = TestClient(KnownHosts(seen, except_for=()), client=(peer, 50000))
    sent = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "elsewhere", "X-Other": "x"}
    headers = client.get("/", headers=sent).json()
    assert ("x-forwarded-proto" in headers) is believed and ("x-forwarded-host" in headers) is believed
    assert headers["x-other"] == "x"
