"""The reward API behind the public address: forwarded as it is, or pointed elsewhere."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from apps.core.proxy import METHODS, Replicas, forward, lifespan
from tests.core.servers import Handler, serving


@pytest.fixture
def rewards(settings: Any) -> Iterator[list[dict[str, Any]]]:
    """What a reward service behind the proxy was sent; it answers with a header and a broken-off status of its own."""
    calls: list[dict[str, Any]] = []

    class Answering(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            calls.append({"path": self.path, "headers": dict(self.headers), "body": body})
            answer = json.dumps({"detail": "wait"}).encode()
            self.send_response(429)
            for name, value in (
                ("Retry-After", "7"),
                ("Connection", "close"),
                ("Content-Length", str(len(answer))),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

    with serving(Answering) as url:
        settings.REWARDS_ADDRESSES, settings.REWARDS_URL = [url], ""
        yield calls


@pytest.fixture
def web() -> Iterator[TestClient]:
    app = Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)], lifespan=lifespan)
    with TestClient(app, follow_redirects=False) as client:
        yield client


def test_a_call_goes_on_as_it_came(web: TestClient, rewards: list[dict[str, Any]]) -> None:
    path = "/api/v1/rewards/desk%20reward/score?key=a%26b"
    answer = web.post(
        path, content=b'{"inputs": []}', headers={"Authorization": "Bearer x", "Connection": "close"}
    )
    (call,) = rewards
    assert (call["path"], call["body"]) == (path, b'{"inputs": []}')
    headers = {name.lower(): value for name, value in call["headers"].items()}
    assert headers["authorization"] == "Bearer x"
    assert headers["x-forwarded-for"] == "testclient"
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.json() == {"detail": "wait"}
    assert "connection" not in answer.headers


def test_a_call_without_a_body(web: TestClient, rewards: list[dict[str, Any]]) -> None:
    assert web.get("/api/v1/rewards/desk/").status_code == 429
    assert rewards[0]["body"] == b""


def test_nobody_there_is_a_problem_that_says_so(web: TestClient, settings: Any) -> None:
    settings.REWARDS_ADDRESSES, settings.REWARDS_URL = ["http://127.0.0.1:9"], ""
    answer = web.post("/api/v1/rewards/desk/score", content=b"{}")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "manage.py rewards" in answer.json()["detail"]


def test_where_rewards_has_an_address_of_its_own(web: TestClient, settings: Any) -> None:
    settings.REWARDS_URL = "https://rewards.example.org"
    answer = web.post("/api/v1/rewards/desk/score?x=1", content=b"{}")
    assert answer.status_code == 307
    assert answer.headers["Location"] == "https://rewards.example.org/api/v1/rewards/desk/score?x=1"


def test_a_replica_that_is_down_is_passed_over_with_the_whole_body(
    web: TestClient, rewards: list[dict[str, Any]], settings: Any
) -> None:
    settings.REWARDS_ADDRESSES = ["http://127.0.0.1:9", *settings.REWARDS_ADDRESSES]
    body = b"x" * 3_000_000
    answers = [web.post("/api/v1/rewards/a/score", content=body) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [429] * 4
    assert [call["body"] == body for call in rewards] == [True] * 4


def test_replicas_are_taken_in_turn_and_one_that_refused_last() -> None:
    replicas, addresses = Replicas(), ["a", "b", "c"]
    assert [replicas.in_turn(addresses)[0] for _ in range(4)] == ["b", "c", "a", "b"]
    replicas.refused("c")
    assert [replicas.in_turn(addresses)[-1] for _ in range(4)] == ["c"] * 4


@pytest.mark.parametrize(("sent", "kept"), [("mine-1", True), ("not one\tto log", False)])
def test_the_service_is_told_the_id_of_the_request(
    web: TestClient, rewards: list[dict[str, Any]], sent: str, kept: bool
) -> None:
    web.get("/api/v1/rewards/a/", headers={"X-Request-ID": sent})
    headers = {name.lower(): value for name, value in rewards[0]["headers"].items()}
    assert (headers["x-request-id"] == sent) is kept and headers["x-request-id"]


def test_an_error_httpx_does_not_know_is_retryable_too(
    web: TestClient, rewards: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Seen under load: the event loop's own, for a connection whose replica is killed while it is written to."""

    async def broken(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the handler is closed")

    monkeypatch.setattr(httpx.AsyncClient, "send", broken)
    answer = web.post("/api/v1/rewards/desk/score", json={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert "failed to pass on POST /api/v1/rewards/desk/score" in caplog.text
