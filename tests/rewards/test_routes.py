"""The paths that web passes on are those that the reward service has; what is within stays within."""

import asyncio
import ipaddress
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.testclient import TestClient

from apps.config.asgi import application as web
from apps.rewards import routes
from apps.rewards.serving.app import make_application
from apps.rewards.serving.context import RequestContext
from apps.rewards.serving.wire import WIRES


def _served() -> dict[str, set[str]]:
    application = make_application(lambda artifact, project: (None, None))  # type: ignore[arg-type,return-value]
    return {
        route.path: set(route.methods or ()) - {"HEAD"}
        for route in application.routes
        if isinstance(route, Route)
    }


def test_web_passes_on_what_the_service_registers_and_nothing_else() -> None:
    within = {routes.DRY_RUN, routes.SERVERS, routes.EMBED, routes.HEALTH, routes.READY, routes.METRICS}
    served = _served()
    assert {route.path: set(route.methods) for route in routes.PUBLIC} == {
        path: methods for path, methods in served.items() if path not in within
    }
    assert {(wire.path, *wire.methods) for wire in WIRES} == {
        (route.path, *route.methods) for route in routes.COMPAT
    }
    assert within < set(served)


@pytest.mark.parametrize("route", routes.PUBLIC, ids=lambda route: route.path)
def test_every_route_is_found_by_its_path(route: Any) -> None:
    path = route.path.replace("{endpoint}", "desk-1")
    assert [other for other in routes.PUBLIC if other.onward(path)] == [route]
    assert route.onward(path) == path
    assert route.onward(path + "/..") is None and route.onward(path + "\n") is None


@pytest.mark.parametrize(
    ("peer", "headers", "allowed"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("10.0.0.7", {}, False),
        ("192.0.2.7", {"X-Forwarded-For": "127.0.0.1"}, False),
        (
            "127.0.0.1",
            {"X-Forwarded-For": "127.0.0.1"},
            False,
        ),  # a proxy on this machine, of whom no one told us
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}, False),
        ("10.1.0.1", {"X-Forwarded-For": "127.0.0.1"}, True),  # one that is trusted says so
        ("10.1.0.1", {"X-Forwarded-For": "203.0.113.5"}, False),
    ],
)
def test_who_may_read_the_metrics(settings: Any, peer: str, headers: dict[str, str], allowed: bool) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("10.1.0.0/16")]
    application = make_application(lambda artifact, project: (None, None))  # type: ignore[arg-type,return-value]

    class Nothing:
        class metrics:
            @staticmethod
            def shown() -> bytes:
                return b"# numbers"

    application.state.service = Nothing
    answer = TestClient(application, client=(peer, 50000)).get("/metrics", headers=headers)
    assert answer.status_code == (200 if allowed else 404)


def test_web_answers_to_its_own_names_only() -> None:
    client = TestClient(web)
    elsewhere = {"Host": "elsewhere.example.org"}
    for path in ("/static/css/touchstone.css", "/api/v1/rewards/a/", "/compat/vllm/classify", "/client/"):
        answer = client.get(path, headers=elsewhere)
        assert answer.status_code == 400 and "TOUCHSTONE_ALLOWED_HOSTS" in answer.json()["detail"]
    assert client.get("/healthz", headers=elsewhere).status_code == 200  # probes ask by address
    assert client.get("/static/css/touchstone.css").status_code == 200


def test_a_client_that_leaves_is_no_error_of_ours(caplog: Any) -> None:
    async def left(scope: Any, receive: Any, send: Any) -> None:
        raise ClientDisconnect

    async def run() -> None:
        scope = {"type": "http", "method": "POST", "path": "/x", "headers": []}
        await RequestContext(left)(scope, None, None)  # type: ignore[arg-type]

    asyncio.run(run())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
