"""Peers' servers by their recorded contracts: what they would refuse is refused, what they answer has their shape.

A peer is a class with methods that take a `Call` and give an `Answer`; `serve` puts it on a port.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.core.servers import Handler, serving


@dataclass
class Call:
    """query: each name with its last value; queries: with all of them."""

    method: str
    path: str
    query: dict[str, str]
    queries: dict[str, list[str]]
    headers: dict[str, str]
    body: Any = None

    @property
    def basic(self) -> str:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return base64.b64decode(token).decode() if scheme == "Basic" else ""


@dataclass
class Answer:
    document: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


class Peer:
    """calls: all that came. limited: what the next calls are answered. fails_after: calls before the server is down."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.limited: list[Answer] = []
        self.fails_after: int | None = None

    def answer(self, call: Call) -> Answer:
        raise NotImplementedError

    def take(self, call: Call) -> Answer:
        self.calls.append(call)
        if self.limited:
            return self.limited.pop(0)
        if self.fails_after is not None and len(self.calls) > self.fails_after:
            return Answer({"message": "down for maintenance"}, 500)
        return self.answer(call)


def too_many(retry_after: str = "0") -> Answer:
    return Answer({"message": "rate limit exceeded"}, 429, {"Retry-After": retry_after})


@contextmanager
def serve(peer: Peer) -> Iterator[str]:
    class Contract(Handler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            queries = parse_qs(parts.query, strict_parsing=bool(parts.query))
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            call = Call(
                self.command,
                parts.path,
                {name: values[-1] for name, values in queries.items()},
                queries,
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(raw) if raw.startswith((b"{", b"[")) else None,
            )
            found = peer.take(call)
            body = found.raw if found.raw is not None else json.dumps(found.document).encode()
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

    with serving(Contract) as url:
        yield url
