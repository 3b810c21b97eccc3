"""A server on this machine that answers calls of ours with what no honest one would, drawn by a seed.

It stands for the language models, verifiers and webhooks that people name: see `ANSWERS`.
"""

import contextlib
import gzip
import json
import random
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

MEGABYTE = 2**20
_MOST_SECONDS = 20.0  # an answer that never ends is given up after
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Send = Callable[[bytes], None]


def _nested_gzip(send: Send, dice: random.Random) -> None:
    """Some kilobytes that unpack to a gigabyte."""
    packed = gzip.compress(b"\0" * (64 * MEGABYTE)) * 16
    send(_HEAD + b"Content-Encoding: gzip, gzip\r\nConnection: close\r\n\r\n" + gzip.compress(packed))


def _endless_body(send: Send, dice: random.Random) -> None:
    send(_HEAD + b"Connection: close\r\n\r\n" + b'{"rewards": [')
    until = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < until:
        send(b"0," * 32_768)


def _endless_headers(send: Send, dice: random.Random) -> None:
    send(_HEAD)
    until = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < until:
        send(b"X: " + b"a" * 65_536 + b"\r\n")


def _byte_by_byte(send: Send, dice: random.Random) -> None:
    send(_HEAD + b"Content-Length: 1000\r\n\r\n")
    for _ in range(int(_MOST_SECONDS)):
        send(b" ")
        time.sleep(1.0)


def _deep(send: Send, dice: random.Random) -> None:
    _document(send, b"[" * dice.choice((1000, 100_000, MEGABYTE)))


def _wide(send: Send, dice: random.Random) -> None:
    _document(send, b'{"rewards": [' + b"[]," * (dice.choice((1, 4)) * 250_000) + b"[]]}")


def _thoughts(send: Send, dice: random.Random) -> None:
    """What a pattern that looks for a closing tag goes over again and again."""
    text = dice.choice(("<think>", "<think>\n", "</think", "```json\n{", "\n\n")) * dice.choice(
        (5_000, 50_000)
    )
    message = {"role": "assistant", "content": text}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    _document(send, json.dumps(reply).encode())


def _numbers(send: Send, dice: random.Random) -> None:
    number = dice.choice((b"NaN", b"1e999", b"-Infinity", b"9" * 100_000, b'"1"', b"null", b"true"))
    _document(send, b'{"rewards": [' + number + b"]}")


def _false_length(send: Send, dice: random.Random) -> None:
    send(_HEAD + b"Content-Length: 99999999999\r\n\r\n{}")


def _elsewhere(send: Send, dice: random.Random) -> None:
    place = dice.choice((b"http://127.0.0.1:22/", b"file:///etc/passwd", b"http://169.254.169.254/"))
    send(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n")


def _no_http(send: Send, dice: random.Random) -> None:
    send(bytes(dice.randrange(256) for _ in range(200)))


def _nothing(send: Send, dice: random.Random) -> None:
    pass


def _honest(send: Send, dice: random.Random) -> None:
    _document(send, b'{"rewards": [0.5]}')


ANSWERS: tuple[Callable[[Send, random.Random], None], ...] = (
    _nested_gzip,
    _endless_body,
    _endless_headers,
    _byte_by_byte,
    _deep,
    _wide,
    _thoughts,
    _numbers,
    _false_length,
    _elsewhere,
    _no_http,
    _nothing,
    _honest,
)


def _document(send: Send, body: bytes) -> None:
    send(_HEAD + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


class HostileServer(socketserver.ThreadingTCPServer):
    """answered: how often."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dice, self.answered = random.Random(seed), 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.BaseRequestHandler):
    server: HostileServer

    def handle(self) -> None:
        dice = random.Random(self.server.dice.random())
        self.server.answered += 1
        with contextlib.suppress(OSError):
            self.request.settimeout(_MOST_SECONDS)
            self._read()
            dice.choice(ANSWERS)(self.request.sendall, dice)

    def _read(self) -> None:
        """The request, as far as it came at once: no one looks at it."""
        request: Any = self.request
        seen = b""
        while b"\r\n\r\n" not in seen and len(seen) < MEGABYTE:
            if not (more := request.recv(65_536)):
                return
            seen += more


@contextlib.contextmanager
def hostile_server(seed: int) -> Iterator[HostileServer]:
    with HostileServer(seed) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
