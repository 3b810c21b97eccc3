"""How many requests of a caller are worked on at once, with applications that end when they are told to."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from apps.core.http import caller_concurrency
from apps.core.http.caller_concurrency import CallerTurns


class Work:
    """An application whose requests end when `end` is set. most: that were in it at once, by their path."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        path = scope["path"]
        self.now[path] = self.now.get(path, 0) + 1
        self.most[path] = max(self.most.get(path, 0), self.now[path])
        await self.end.wait()
        self.now[path] -= 1
        await PlainTextResponse("done")(scope, receive, send)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def client(app: CallerTurns, address: str = "192.0.2.1") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def sent(
    http: httpx.AsyncClient, path: str, times: int, **headers: str
) -> list["asyncio.Task[httpx.Response]"]:
    return [asyncio.ensure_future(http.get(path, headers=headers)) for _ in range(times)]


def test_one_caller_leaves_room_for_others() -> None:
    async def test() -> None:
        work = Work()
        app = CallerTurns(work, 2, "sessionid")
        async with client(app) as http:
            tasks = sent(http, "/greedy", 6, authorization="Bearer greedy")
            tasks += sent(http, "/other", 1, authorization="Bearer other")
            tasks += sent(http, "/page", 3, cookie="a=b; sessionid=ann; c=d")
            await settled()
            assert work.now == {"/greedy": 2, "/other": 1, "/page": 2}
            work.end.set()
            answers = await asyncio.gather(*tasks)
        assert {answer.status_code for answer in answers} == {200}
        assert work.most == {"/greedy": 2, "/other": 1, "/page": 2}
        assert app._by_caller == {}

    run(test())


async def in_two_parts(first: bytes, second: bytes) -> AsyncIterator[bytes]:
    yield first
    yield second


@pytest.mark.parametrize(
    ("parts", "content_type"),
    [
        ((b"a" * caller_concurrency.LARGE, b"a"), "application/json"),
        ((b"\x28\xb5\x2f\xfd", b"x"), "application/json"),
        ((b"\x28", b"\xb5\x2f\xfdx"), "application/json"),  # its beginning comes in two parts
        ((b"PK\x03\x04", b"x"), "application/zip"),
        ((b"--a\r\n", b"PK\x03\x04"), "multipart/form-data; boundary=a"),  # a form: anything may be in it
    ],
)
def test_large_and_packed_bodies_are_read_one_at_a_time(
    parts: tuple[bytes, bytes], content_type: str
) -> None:
    async def test() -> None:
        work = Work()
        async with client(CallerTurns(work, 4, "sessionid")) as http:
            headers = {"authorization": "Bearer a", "content-type": content_type}
            tasks = [
                asyncio.ensure_future(http.post("/large", content=in_two_parts(*parts), headers=headers))
                for _ in range(3)
            ]
            tasks += sent(http, "/small", 1, authorization="Bearer a")
            await settled()
            assert work.now == {"/large": 1, "/small": 1}
            work.end.set()
            assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {200}

    run(test())


def test_a_large_body_waits_for_as_long_as_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another import is not sent away, to be uploaded again, after the minute that is enough for a page."""
    monkeypatch.setattr(caller_concurrency, "MOST_SECONDS", 0.0)

    async def test() -> None:
        work = Work()
        async with client(CallerTurns(work, 4, "sessionid", large_seconds=20)) as http:
            headers = {"authorization": "Bearer a"}
            tasks = [
                asyncio.ensure_future(
                    http.post("/large", content=b"a" * (caller_concurrency.LARGE + 1), headers=headers)
                )
                for _ in range(2)
            ]
            await settled()
            work.end.set()
            assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {200}

    run(test())


def test_a_refusal_names_the_limit_that_was_met() -> None:
    async def test() -> None:
        work = Work()
        async with client(CallerTurns(work, 4, "sessionid", large_seconds=0)) as http:
            headers = {"authorization": "Bearer a"}
            first = asyncio.ensure_future(http.post("/api/a", content=b"PK\x03\x04", headers=headers))
            await settled()
            second = await http.post("/api/a", content=b"PK\x03\x04", headers=headers)
            assert (second.status_code, second.headers["retry-after"]) == (429, "5")
            assert "One large or packed body at a time" in second.json()["detail"]
            work.end.set()
            assert (await first).status_code == 200

    run(test())


def test_keys_that_are_made_up_count_by_address() -> None:
    async def test() -> None:
        work = Work()
        app = CallerTurns(work, 1, "sessionid")
        async with client(app) as http, client(app, "192.0.2.2") as elsewhere:
            tasks = [task for n in range(20) for task in sent(http, "/a", 1, authorization=f"Bearer {n}")]
            tasks += sent(elsewhere, "/b", 1, authorization="Bearer x")
            await settled()
            assert work.now == {"/a": caller_concurrency.PER_ADDRESS, "/b": 1}
            work.end.set()
            await asyncio.gather(*tasks)

    run(test())


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/v1/x", "application/problem+json"), ("/p/x", "text/plain")]
)
def test_who_has_too_many_waiting_is_told(path: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_concurrency, "MOST_WAITING", 3)

    async def test() -> None:
        work = Work()
        app = CallerTurns(work, 1, "sessionid")
        async with client(app) as http:
            tasks = sent(http, path, 6, authorization="Bearer greedy")
            await settled()
            refused = [task.result() for task in tasks if task.done()]
            assert [answer.status_code for answer in refused] == [429, 429]
            assert refused[0].headers["Retry-After"] == "5"
            assert refused[0].headers["Content-Type"].startswith(kind)
            assert "1 at the same time" in refused[0].text
            work.end.set()
            await asyncio.gather(*tasks)
        assert app._by_caller == {}

    run(test())


def test_who_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_concurrency, "MOST_SECONDS", 0.01)

    async def test() -> None:
        work = Work()
        async with client(CallerTurns(work, 1, "sessionid")) as http:
            first, second = sent(http, "/x", 2, authorization="Bearer a")
            assert (await second).status_code == 429
            work.end.set()
            assert (await first).status_code == 200

    run(test())


def test_a_slow_body_takes_no_turn() -> None:
    """What is still being sent is not worked on."""

    async def test() -> None:
        work = Work()
        app = CallerTurns(work, 1, "sessionid")
        rest = asyncio.Event()
        messages: list[Message] = [{"type": "http.request", "body": b"a", "more_body": True}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await rest.wait()
            return {"type": "http.request", "body": b"b", "more_body": False}

        async def send(message: Message) -> None:
            pass

        headers = [(b"authorization", b"Bearer a")]
        scope = {"type": "http", "path": "/slow", "headers": headers, "client": ("192.0.2.1", 1)}
        slow = asyncio.ensure_future(app(scope, receive, send))
        await settled()
        async with client(app) as http:
            work.end.set()
            assert (await http.get("/quick", headers={"authorization": "Bearer a"})).status_code == 200
        rest.set()
        await slow
        assert work.most == {"/quick": 1, "/slow": 1}

    run(test())
