"""A server that answers as no one should, by raw bytes: for every caller that may meet it."""

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

Answer = Callable[[socket.socket], None]
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_ENDLESS = 64 * 2**20  # bytes after which even an endless answer ends, so that a test does


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> Answer:
    lines = [b"HTTP/1.1 " + status, b"Content-Type: application/json", *headers]
    head = b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""])
    return lambda connection: connection.sendall(head + body)


@cache
def _compressed(size: int) -> bytes:
    """A part at a time: the server is in the process whose memory is looked at."""
    part, packer = b" " * 2**16, zlib.compressobj(wbits=31)
    return b"".join([*(packer.compress(part) for _ in range(size // len(part))), packer.flush()])


def nested_gzip(connection: socket.socket) -> None:
    """Kilobytes that two rounds of gzip make gigabytes of, if they are let."""
    body = gzip.compress(_compressed(2**22) * 200, mtime=0)
    whole(body, b"Content-Encoding: gzip, gzip")(connection)


def bomb(coding: bytes) -> Answer:
    return lambda connection: whole(_compressed(2**26), b"Content-Encoding: " + coding)(connection)


def repeated(start: bytes, part: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        many = part * max(65536 // len(part), 1)
        for _ in range(_ENDLESS // len(many)):
            connection.sendall(many)

    return answer


def slowly(start: bytes, part: bytes, pause: float = 0.05) -> Answer:
    """A byte at a time, for as long as someone reads."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        gone = threading.Event()
        while not gone.wait(pause):
            connection.sendall(part)

    return answer


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def closes(connection: socket.socket) -> None:
    connection.close()


# By what is wrong with it. Each is refused, quickly, and without being held in memory.
ANSWERS: dict[str, Answer] = {
    "gzip within gzip": nested_gzip,
    "gzip": bomb(b"gzip"),
    "deflate": bomb(b"deflate"),
    "br": bomb(b"br"),
    "zstd": bomb(b"zstd"),
    "an unknown coding": bomb(b"x-unknown"),
    "identity, then gzip": bomb(b"identity, gzip"),
    "gzip in chunks": repeated(
        _OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nabcde\r\n"
    ),
    "an endless body": repeated(_OK + b"\r\n", b" "),
    "an endless body in chunks": repeated(_CHUNKED, b"400\r\n" + b" " * 1024 + b"\r\n"),
    "chunks of a byte": repeated(_CHUNKED, b"1\r\n \r\n"),
    "chunks with long extensions": repeated(_CHUNKED, b"1;" + b"x" * 4000 + b"\r\n \r\n"),
    "a length of gigabytes": repeated(_OK + b"Content-Length: 99999999999\r\n\r\n", b" "),
    "a length of many digits": repeated(_OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b" "),
    "a length that is none": repeated(_OK + b"Content-Length: -5\r\n\r\n", b" "),
    "two lengths": repeated(_OK + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n", b" "),
    "a body that ends early": lambda c: c.sendall(_OK + b"Content-Length: 5000\r\n\r\nabc"),
    "endless headers": repeated(_OK, b"X-More: of the same\r\n"),
    "many headers": lambda c: c.sendall(_OK + b"a:b\r\n" * 5000 + b"Content-Length: 0\r\n\r\n"),
    "a header of megabytes": repeated(_OK + b"X-Long: ", b"x"),
    "an endless status line": repeated(b"HTTP/1.1 200 ", b"x"),
    "endless interim replies": repeated(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "endless trailers": repeated(_OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: of the same\r\n"),
    "no HTTP": lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "nothing": closes,
}  # fmt: skip
# These take the whole time of the call: few, and with a short one.
SLOW: dict[str, Answer] = {
    "silence": silent,
    "headers a byte at a time": slowly(_OK, b"x"),
    "a body a byte at a time": slowly(_OK + b"\r\n", b" "),
}
# Whole replies whose JSON is the trouble.
DOCUMENTS: dict[str, bytes] = {
    "arrays within arrays": b"[" * 200_000,
    "objects within objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "closed arrays within arrays": b"[" * 500 + b"]" * 500,
    "many empty arrays": b"[" + b"[]," * 300_000 + b"[]]",
    "a number of many digits": b"[" + b"9" * 500_000 + b"]",
    "no text": b"\xff\xfe\xfd" * 1000,
    "a lone surrogate": b'["\\ud800"]',
    "not a number": b'{"rewards": [NaN], "choices": NaN, "usage": NaN}',
    "another shape": b'{"rewards": {"a": 1}, "choices": 7, "usage": [1], "data": "x"}',
    "nothing": b"",
}


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """The address of a server that answers every request by `answer`."""
    listening = socket.create_server(("127.0.0.1", 0))
    open_ones = set[socket.socket]()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            _read_request(connection)
            answer(connection)
            connection.shutdown(socket.SHUT_WR)
        open_ones.discard(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                open_ones.add(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for each in list(open_ones):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _read_request(connection: socket.socket) -> None:
    """Head and body, so that closing the connection does not reset it."""
    head = b""
    while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
        head += data
    head, _, body = head.partition(b"\r\n\r\n")
    lines = [line.lower().partition(b":") for line in head.split(b"\r\n")]
    size = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
    while len(body) < size and (data := connection.recv(65536)):
        body += data
