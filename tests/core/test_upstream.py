"""Connections to `rewards`: kept, streamed both ways, and given up where something is wrong with them."""

import asyncio
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from apps.core.http import upstream
from apps.core.http.upstream import ConnectError, ConnectionLost, NoAnswer, UpstreamPool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: a\r\n\r\nok"


class Server:
    """Answers each request with what `answer` makes of it, and counts connections."""

    def __init__(self, answer: Callable[[bytes, Reader, Writer], Awaitable[None]]) -> None:
        self._answer, self.connections, self.heads = answer, 0, list[bytes]()

    async def serve(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self._answer(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def always(answer: bytes, *, close: bool = False) -> Server:
    async def reply(head: bytes, reader: Reader, writer: Writer) -> None:
        writer.write(answer)
        if close:
            await writer.drain()
            writer.close()

    return Server(reply)


def with_server(server: Server, use: Callable[[UpstreamPool, str], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        pool = UpstreamPool()
        try:
            return await use(pool, f"http://127.0.0.1:{port}")
        finally:
            pool.close()
            listening.close()

    return asyncio.run(run())


async def get(
    pool: UpstreamPool, address: str, *, method: str = "GET", headers: Any = ()
) -> tuple[int, bytes]:
    answer = await pool.ask(address, method, "/a?b=c", headers, None)
    return answer.status, await answer.read()


async def parts(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def test_a_connection_is_used_again() -> None:
    server = always(OK)

    async def use(pool: UpstreamPool, address: str) -> list[tuple[int, bytes]]:
        return [await get(pool, address, headers=[(b"authorization", b"Bearer x")]) for _ in range(3)]

    assert with_server(server, use) == [(200, b"ok")] * 3
    assert server.connections == 1
    assert server.heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"authorization: Bearer x\r\n" in server.heads[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",  # its end is that of the connection
    ],
)
def test_a_connection_that_ends_is_not_used_again(answer: bytes) -> None:
    server = always(answer, close=True)

    async def use(pool: UpstreamPool, address: str) -> list[tuple[int, bytes]]:
        return [await get(pool, address) for _ in range(2)]

    assert with_server(server, use) == [(200, b"ok")] * 2
    assert server.connections == 2


def test_a_server_that_closed_a_kept_connection_is_asked_by_another() -> None:
    async def reply(head: bytes, reader: Reader, writer: Writer) -> None:
        writer.write(OK)
        await writer.drain()
        writer.close()  # without having said so

    server = Server(reply)

    async def use(pool: UpstreamPool, address: str) -> list[tuple[int, bytes]]:
        found = []
        for _ in range(2):
            found.append(await get(pool, address))
            await asyncio.sleep(0.02)  # the end of the connection arrives
        return found

    assert with_server(server, use) == [(200, b"ok")] * 2
    assert server.connections == 2


@pytest.mark.parametrize("is_chunked", [True, False])
def test_bodies_of_megabytes_go_through_both_ways(is_chunked: bool) -> None:
    sent = [bytes([number]) * 700_000 for number in range(5)] + [b"", b"end"]

    async def echo(head: bytes, reader: Reader, writer: Writer) -> None:
        body = b""
        if b"transfer-encoding: chunked" in head:
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        else:
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for place in range(0, len(body), 300_000):
            part = body[place : place + 300_000]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    server = Server(echo)
    headers = [] if is_chunked else [(b"content-length", str(sum(map(len, sent))).encode())]

    async def use(pool: UpstreamPool, address: str) -> list[bool]:
        found = []
        for _ in range(2):
            answer = await pool.ask(address, "POST", "/", headers, parts(*sent))
            chunks = []
            async for chunk in answer.stream():
                chunks.append(chunk)
                await asyncio.sleep(0)
            found.append(b"".join(chunks) == b"".join(sent))
        return found

    assert with_server(server, use) == [True, True]
    assert server.connections == 1


def test_an_answer_before_the_whole_body_came() -> None:
    async def too_large(head: bytes, reader: Reader, writer: Writer) -> None:
        await reader.readexactly(10)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch")

    server = Server(too_large)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 10_000
            await asyncio.sleep(0.001)

    async def use(pool: UpstreamPool, address: str) -> list[tuple[int, bytes]]:
        found = []
        for _ in range(2):
            answer = await pool.ask(address, "POST", "/", [], endless())
            found.append((answer.status, await answer.read()))
        return found

    assert with_server(server, use) == [(413, b"much")] * 2
    assert server.connections == 2  # the rest of a body must not become a request


@pytest.mark.parametrize(
    ("method", "answer", "body"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", b""),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + OK, b"ok"),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n",
            b"ok",
        ),
    ],
)
def test_answers_of_every_framing(method: str, answer: bytes, body: bytes) -> None:
    async def use(pool: UpstreamPool, address: str) -> list[bytes]:
        return [(await get(pool, address, method=method))[1] for _ in range(2)]

    assert with_server(always(answer), use) == [body, body]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_call_without_a_body_says_so(method: str) -> None:
    server = always(OK)
    with_server(server, lambda pool, address: get(pool, address, method=method))
    assert b"content-length: 0\r\n" in server.heads[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "ended before the answer"),
        (b"HTTP/1.1 200 OK\r\nContent-", "ended before the answer"),
        (b"", "ended before the answer"),
        (b"SMTP ready\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n", "no HTTP"),
    ],
)
def test_an_answer_that_breaks_off_is_an_error(answer: bytes, message: str) -> None:
    with pytest.raises(ConnectionLost, match=message):
        with_server(always(answer, close=True), get)


def test_no_connection() -> None:
    with pytest.raises(ConnectError, match=r"no connection to 127\.0\.0\.1:9"):
        asyncio.run(get(UpstreamPool(), "http://127.0.0.1:9"))


def test_a_server_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "INACTIVE_SECONDS", 0.05)
    server = Server(lambda head, reader, writer: asyncio.sleep(5))
    with pytest.raises(NoAnswer, match="nothing came"):
        with_server(server, get)


def test_an_answer_that_is_not_read_to_its_end_takes_its_connection_along() -> None:
    server = always(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000)

    async def use(pool: UpstreamPool, address: str) -> None:
        for _ in range(2):
            answer = await pool.ask(address, "GET", "/", [], None)
            answer.release()
            answer.release()

    with_server(server, use)
    assert server.connections == 2


def test_a_connection_that_was_idle_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "IDLE_SECONDS", 0.0)
    server = always(OK)

    async def use(pool: UpstreamPool, address: str) -> None:
        for _ in range(3):
            await get(pool, address)
            await asyncio.sleep(0.001)

    with_server(server, use)
    assert server.connections == 3


def test_requests_at_once_have_a_connection_each_and_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "MOST_IDLE", 2)

    async def slow(head: bytes, reader: Reader, writer: Writer) -> None:
        await asyncio.sleep(0.05)
        writer.write(OK)

    server = Server(slow)

    async def use(pool: UpstreamPool, address: str) -> None:
        for _ in range(2):
            assert await asyncio.gather(*(get(pool, address) for _ in range(5))) == [(200, b"ok")] * 5

    with_server(server, use)
    assert server.connections == 5 + 3
