"""What a stranger may send to web and rewards: bounded in size, in number and in time, and answered in words."""

import ipaddress
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.core.http.connection_limits import ConnectionLimits, Connections, _key, most_connections
from apps.core.http.server import Server, make_server
from benchmarks.half_open import half_open
from tests.ports import free_port

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was asked, and how long its body was."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"].endswith("shutdown"):
                return
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            break
    if scope["path"] == "/large":
        body = b"x" * 50_000_000
    else:
        names = sorted(name.decode() for name, _ in scope["headers"])
        body = json.dumps([scope["method"], scope["path"], size, names]).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running(limits: ConnectionLimits) -> Iterator[Server]:
    server = make_server(echo, host="127.0.0.1", port=free_port(), limits=limits)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(ConnectionLimits(linger_seconds=0.2)) as it:
        yield it


def ask(server: Server, *parts: bytes) -> bytes:
    """All that is answered until the server closes, or 0.5 s after the first of it."""
    with closing(socket.create_connection(("127.0.0.1", server.config.port), timeout=5)) as asking:
        answer = b""
        try:
            for part in parts:
                asking.sendall(part)
        except OSError:
            pass  # cut off; what was answered can be read all the same
        try:
            while more := asking.recv(65536):
                answer += more
                asking.settimeout(0.3)
        except OSError:
            pass
        return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def many(line: Callable[[int], bytes], count: int) -> bytes:
    return b"".join(line(number) for number in range(count))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"], 431),
        ([b"GET /x HTTP/1.1\r\nHost: localhost\r\n", *[b"X: " + b"a" * 2**20] * 8], 431),  # one without an end
        ([b"GET /x HTTP/1.1\r\nHost: localhost\r\n" + many(lambda n: b"X%d: b\r\n" % n, 200) + b"\r\n"], 431),
        ([b"GET /x HTTP/1.1\r\n", *[b"X: " + b"a" * 15_000 + b"\r\n"] * 4], 431),
        ([b"GET /x HTTP/1.1\r\n" + b"a" * 100_000], 431),  # a name without an end
        ([b"\r\n" * 100_000], 431),  # nothing at all, forever
        ([b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"], 414),
        ([b"GET /" + b"a" * 200_000], 414),
        ([HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], 400),
        ([HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"], 400),
        ([HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"], 400),
        ([HEAD + b"Content-Length: -1\r\n\r\n"], 400),
        ([HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"], 501),
        ([HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"], 501),
        ([b"POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], 400),
        ([HEAD + b"Host: other\r\n\r\n"], 400),
        ([b"GET /x HTTP/1.1\r\n\r\n"], 400),
        ([b"GET http://elsewhere/x HTTP/1.1\r\nHost: localhost\r\n\r\n"], 400),
        ([b"GET x HTTP/1.1\r\nHost: localhost\r\n\r\n"], 400),
        ([b"CONNECT elsewhere:80 HTTP/1.1\r\nHost: elsewhere:80\r\n\r\n"], 501),
        ([b"TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n"], 501),
        ([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], 400),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;a=" + b"b" * 100_000], 400),  # an endless extension
        ([HEAD + CHUNKED + (b"1;" + b"b" * 15_000 + b"\r\nx\r\n") * 20], 400),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + many(lambda n: b"T%d: b\r\n" % n, 200)], 431),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nT: " + b"a" * 100_000], 400),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"], 400),
    ],
)  # fmt: skip
def test_what_is_refused(server: Server, parts: list[bytes], expected: int) -> None:
    answer = ask(server, *parts)
    assert status(answer) == expected
    head, _, body = answer.partition(b"\r\n\r\n")
    assert json.loads(body)["status"] == expected
    assert b"connection: close" in head and b"x-content-type-options: nosniff" in head


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([HEAD + b"Content-Length: 5\r\n\r\nhello"], 5),
        ([HEAD + b"X: " + b"a" * 15_000 + b"\r\n\r\n"], 0),
        ([*(bytes([byte]) for byte in HEAD + b"Content-Length: 3\r\n\r\nabc")], 3),
        ([HEAD + CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n"], 50_000),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX-Late: yes\r\n\r\n"], 3),
        ([b"POST http://localhost/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"], 2),
        ([b"POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"], 2),
        # What curl --http2 and Java send over plain HTTP; httptools alone loses their bodies.
        ([HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc"], 3),
        ([HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + CHUNKED, b"3\r\nabc\r\n0\r\n\r\n"], 3),
        ([HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"], 0),
    ],
)  # fmt: skip
def test_what_is_honest_passes(server: Server, parts: list[bytes], size: int) -> None:
    answer = ask(server, *parts)
    assert status(answer) == 200
    assert json.loads(answer.partition(b"\r\n\r\n")[2])[:3] == ["POST", "/x", size]


def test_a_trailer_is_no_header(server: Server) -> None:
    answer = ask(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: x\r\n\r\n")
    assert "authorization" not in json.loads(answer.partition(b"\r\n\r\n")[2])[3]


def test_requests_on_one_connection(server: Server) -> None:
    asked = HEAD + b"Content-Length: 2\r\n\r\nab"
    assert ask(server, asked * 10).count(b"HTTP/1.1 200") == 10
    upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab"
    assert ask(server, upgrade * 3 + asked).count(b"HTTP/1.1 200") == 4
    # Queued without an end they fill the memory.
    assert ask(server, asked * 1000).count(b"HTTP/1.1 200") < 100


def test_an_endless_header_costs_no_memory(server: Server) -> None:
    """400 MB of one header took 400 MB."""
    with closing(socket.create_connection(("127.0.0.1", server.config.port), timeout=1)) as asking:
        asking.sendall(HEAD)
        sent = 0
        with pytest.raises(OSError):
            while sent < 400:
                asking.sendall(b"X: " + b"a" * 2**20)
                sent += 1
        assert sent < 30  # what the kernel holds


def test_half_open_connections_leave_it_answering() -> None:
    with running(ConnectionLimits(connections=200)) as server:
        found = half_open(server.config.port, 500, path="/x")
        assert found["failures"] == 0
        assert found["slowest_seconds"] < 1
        assert found["still_open"] <= 200
        assert len(server.connections) <= 200


def test_a_request_is_answered_whoever_was_first(server: Server) -> None:
    """One that is being answered is never dropped for those that come after; where all are, the next is told so."""
    with running(ConnectionLimits(connections=5, linger_seconds=0.2)) as server:
        sending = [socket.create_connection(("127.0.0.1", server.config.port), timeout=5) for _ in range(5)]
        for each in sending:
            each.sendall(HEAD + b"Content-Length: 2\r\n\r\na")
        while server.connections.waiting:
            time.sleep(0.01)
        answer = ask(server, HEAD + b"\r\n")
        assert status(answer) == 503 and b"retry-after: " in answer
        for each in sending:
            each.sendall(b"b")
            assert each.recv(100).startswith(b"HTTP/1.1 200")
            each.close()


def test_no_file_left_does_not_end_the_accepting() -> None:
    """EMFILE: the connections that come then are closed, and the next ones are taken."""
    with running(ConnectionLimits()) as server:
        files = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = [socket.socket() for _ in range(3)]
        try:
            lowest = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
            try:
                while True:
                    files.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            for each in spare:  # which have their descriptors already
                each.settimeout(2)
                each.connect(("127.0.0.1", server.config.port))
                try:
                    each.sendall(HEAD + b"\r\n")
                    each.recv(10)
                except OSError:
                    pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for number in files:
                os.close(number)
            for each in spare:
                each.close()
        deadline = time.monotonic() + 5
        while not (answer := ask(server, HEAD + b"\r\n")) and time.monotonic() < deadline:
            pass
        assert status(answer) == 200


# Times, without waiting: `check` is called with the time that would be.


@contextmanager
def one_connection(server: Server, sent: bytes) -> Iterator[tuple[socket.socket, Any]]:
    """A client that sent something, and the server's side of its connection."""
    with closing(socket.create_connection(("127.0.0.1", server.config.port), timeout=5)) as asking:
        mine = asking.getsockname()
        if sent:
            asking.sendall(sent)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for each in list(server.connections._open):
                if each.client == mine and (not sent or each._head_raw or each._in_body or each.cycle):
                    time.sleep(0.05)
                    yield asking, each
                    return
            time.sleep(0.01)
        raise AssertionError("the connection did not arrive")


def later(protocol: Any, seconds: float) -> None:
    done = threading.Event()

    def check() -> None:
        protocol.check(protocol.loop.time() + seconds)
        done.set()

    protocol.loop.call_soon_threadsafe(check)
    assert done.wait(5)


def read(asking: socket.socket) -> bytes:
    answer = b""
    try:
        while more := asking.recv(65536):
            answer += more
    except OSError:
        pass
    return answer


@pytest.mark.parametrize(
    ("sent", "after", "expected"),
    [
        (b"", 25, b""),  # it said nothing: closed without a word
        (b"GET /x HTTP/1.1\r\nHost: lo", 25, b"HTTP/1.1 408"),
        (HEAD + b"Content-Length: 1000\r\n\r\nabc", 25, b"HTTP/1.1 408"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 25, b"HTTP/1.1 408"),
        (HEAD + b"Content-Length: 2\r\n\r\nab" + b"GET /y HTT", 25, b"HTTP/1.1 200"),  # of the next one
    ],
)
def test_who_does_not_go_on_is_cut_off(server: Server, sent: bytes, after: float, expected: bytes) -> None:
    with one_connection(server, sent) as (asking, protocol):
        later(protocol, 10)
        assert not protocol.transport.is_closing()
        later(protocol, after)
        answer = read(asking)
        assert answer.startswith(expected) and bool(answer) == bool(expected)
        if b"GET /y" in sent:
            assert b"HTTP/1.1 408" in answer


def test_a_slow_and_honest_body_goes_on(server: Server) -> None:
    """500 bytes a second over each window are enough, however long it takes; and waiting for `100 Continue` is."""
    head = HEAD + b"Content-Length: 1000000\r\n\r\n" + b"a" * 12_000
    with one_connection(server, head) as (_, protocol):
        later(protocol, 21)
        assert protocol._cut_at is None
        later(protocol, 60)  # and nothing came since
        assert protocol._cut_at is not None


def test_a_client_that_does_not_read_is_cut_off(server: Server) -> None:
    with one_connection(server, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as (_, protocol):
        deadline = time.monotonic() + 5
        while not protocol.transport.get_write_buffer_size() and time.monotonic() < deadline:
            time.sleep(0.01)
        later(protocol, 0)
        later(protocol, 10)
        assert not protocol.transport.is_closing()
        later(protocol, 25)
        assert protocol.transport.is_closing()


# The registry, alone.


class Waiting:
    def __init__(self, peer: str) -> None:
        self.peer, self.dropped = peer, False

    def drop(self) -> None:
        self.dropped = True

    def check(self, now: float) -> None:
        pass


def test_the_oldest_that_waits_goes_first_and_of_its_own_address() -> None:
    registry = Connections(ConnectionLimits(connections=4, per_address=2))
    ours = [Waiting("192.0.2.1") for _ in range(3)]
    others = [Waiting(f"198.51.100.{number}") for number in range(3)]
    assert all(registry.admit(each) for each in ours)
    assert [each.dropped for each in ours] == [True, False, False]
    assert all(registry.admit(each) for each in others)
    assert [each.dropped for each in ours] == [True, True, False]
    registry.busy(ours[2])
    assert registry.admit(Waiting("203.0.113.1"))
    assert not ours[2].dropped and others[0].dropped
    assert len(registry) == 4


def test_one_address_does_not_keep_out_another() -> None:
    registry = Connections(ConnectionLimits(connections=100, per_address=3))
    busy = [Waiting("192.0.2.1") for _ in range(3)]
    for each in busy:
        registry.admit(each)
        registry.busy(each)
    assert not registry.admit(Waiting("192.0.2.1"))
    assert registry.admit(Waiting("192.0.2.2"))
    registry.leave(busy[0])
    assert registry.admit(Waiting("192.0.2.1"))


def test_what_counts_as_one_address(settings: Any) -> None:
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("10.0.0.0/8")]
    assert _key("10.1.2.3") == _key("127.0.0.1") == _key("::1") == _key("") == ""
    assert _key("2001:db8:1:2::5") == _key("2001:db8:1:2:ffff::1") != _key("2001:db8:1:3::5")
    assert _key("::ffff:192.0.2.1") == _key("192.0.2.1")


def test_the_limit_of_open_files_bounds_it(caplog: Any) -> None:
    assert most_connections(5000, 20_000) == 5000
    assert most_connections(5000, 1024) == 384
    assert "LimitNOFILE" in caplog.text


def test_refusals_are_told_in_one_line(caplog: Any) -> None:
    registry = Connections(ConnectionLimits())
    for _ in range(1000):
        registry.note("refused: 431")
    registry.sweep(100.0)
    registry.note("refused: 431")
    registry.sweep(101.0)
    assert len(caplog.records) == 1 and "1000 refused: 431" in caplog.text
