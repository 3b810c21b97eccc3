"""The reward API behind the public address: calls go on to the `rewards` process, streamed both ways.

Only those of a table of routes: the path that goes on is made of the route and of checked names, never of what came.
"""

import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TypedDict

import httpx
from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from apps.core.http.client_address import SIGNED_HEADER, client_address, signed_address
from apps.core.logs import request_id
from apps.core.version_names import SLUG_PATTERN
from workers.schema.patterns import TextPattern, quote

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# RFC 9110, 7.6.1: these belong to one connection.
_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# Ours to say, of this connection only (Host, Expect), or of no use there (Cookie).
_NOT_PASSED_ON = {
    *_HOP_BY_HOP,
    b"x-request-id",
    b"host",
    b"expect",
    b"cookie",
    b"forwarded",
    b"x-real-ip",
    b"via",
}
SESSION_HEADER = "X-Touchstone-Session"
_PASSED_ON = {b"x-touchstone-run", b"x-touchstone-policy", b"x-touchstone-version"}
_OURS = (b"x-forwarded-", b"x-touchstone-")
_REFUSED_FOR = 2.0  # seconds
_TIMEOUT = httpx.Timeout(600.0, connect=5.0, pool=60.0)  # trainers wait up to 180 s and more

log = logging.getLogger(__name__)


class ProxyState(TypedDict):
    client: httpx.AsyncClient
    replicas: "Replicas"


class Replicas:
    """The addresses of `rewards`, taken in turn; one that refused a connection is asked last for a while."""

    def __init__(self) -> None:
        self._refused: dict[str, float] = {}
        self._next = 0

    def in_turn(self, addresses: list[str], session: str = "") -> list[str]:
        """session: equal ones go to the same address, by rendezvous hashing; it is where the cache of one is."""
        if session:
            order = sorted(addresses, key=lambda each: hashlib.sha256(f"{session} {each}".encode()).digest())
        else:
            self._next = (self._next + 1) % len(addresses)
            order = addresses[self._next :] + addresses[: self._next]
        return sorted(order, key=lambda each: time.monotonic() < self._refused.get(each, 0.0))

    def refused(self, address: str) -> None:
        self._refused[address] = time.monotonic() + _REFUSED_FOR


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[ProxyState]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx.AsyncClient(timeout=_TIMEOUT, limits=limits, trust_env=False) as client:
        yield {"client": client, "replicas": Replicas()}


_BRACES = TextPattern(r"\{(\w+)\}")


@dataclass(frozen=True)
class PublicRoute:
    """path: parts in braces are names of endpoints and the like, as `[-A-Za-z0-9_]{1,60}`."""

    path: str
    methods: tuple[str, ...]

    @cached_property
    def _pattern(self) -> TextPattern:
        literal_and_name = _BRACES.split(self.path)
        parts = [
            f"(?P<{part}>{SLUG_PATTERN})" if place % 2 else quote(part)
            for place, part in enumerate(literal_and_name)
        ]
        return TextPattern("".join(parts))

    def onward(self, raw_path: str) -> str | None:
        """The path to ask for where `raw_path`, as it came, is one of this route. Nothing encoded is decoded: none of
        the names needs it, and two readings of a path are what an attack is made of."""
        found = self._pattern.fullmatch(raw_path)
        return self.path.format(**found.groupdict()) if found else None

    def takes(self, method: str) -> bool:
        return method in self.methods or (method == "HEAD" and "GET" in self.methods)


def forwarding(routes: Sequence[PublicRoute]) -> Callable[[Request], Awaitable[Response]]:
    """The handler that passes on what is among `routes`; 404 and 405 for everything else."""

    async def forward(request: Request) -> Response:
        raw_path = request.scope["raw_path"].decode("ascii", "replace")
        found = [(route, path) for route in routes if (path := route.onward(raw_path)) is not None]
        if not found:
            return _problem(
                404, "There is no such path in the reward API; its calls are in /api/v1/rewards/openapi.json."
            )
        for route, path in found:
            if route.takes(request.method):
                return await _forward(request, path)
        allowed = ", ".join(sorted({method for route, _ in found for method in route.methods}))
        return _problem(405, f"This path takes {allowed}.", {"Allow": allowed})

    return forward


async def _forward(request: Request, path: str) -> Response:
    if query := request.scope["query_string"].decode("latin-1"):
        path += f"?{query}"
    if settings.REWARDS_URL:  # rewards has a public address of its own; 307 keeps method and body
        return RedirectResponse(settings.REWARDS_URL + path, status_code=307)
    headers = list(_passed_on(request.headers.raw))
    headers.append((b"x-request-id", request_id(request.headers.get("x-request-id")).encode()))
    headers.append((SIGNED_HEADER.encode(), signed_address(client_address(request)).encode()))
    try:
        answer = await _send(request, path, headers)
    except (httpx.TransportError, ClientDisconnect) as error:
        return _unreachable(error)
    except Exception as error:
        # For a connection whose replica is killed while it is made, httpx lets through what it does not know.
        log.exception("failed to pass on %s %s", request.method, request.url.path)
        return _unreachable(error)
    response = StreamingResponse(_body(answer), status_code=answer.status_code)
    response.raw_headers = [
        (name, value) for name, value in _without_hop(answer.headers.raw) if name.lower() != b"date"
    ]
    return response


def _passed_on(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    """Of a stranger's headers those that `rewards` may see: none that our own processes tell one another by."""
    for name, value in _without_hop(headers):
        if name not in _NOT_PASSED_ON and (name in _PASSED_ON or not name.startswith(_OURS)):
            yield name, value


def _without_hop(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without those of one connection, which may name others that are."""
    there = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip() for name, value in there if name == b"connection" for part in value.lower().split(b",")
    }
    # Without them it would be another request.
    named -= {b"authorization", b"content-length", b"content-type"}
    return [(name, value) for name, value in there if name not in _HOP_BY_HOP and name not in named]


async def _send(request: Request, path: str, headers: list[tuple[bytes, bytes]]) -> httpx.Response:
    """To the first that takes the connection: until then nothing of the body is read, so another one can have it."""
    client: httpx.AsyncClient = request.state.client
    replicas: Replicas = request.state.replicas
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    refusal: httpx.TransportError | None = None
    for address in replicas.in_turn(settings.REWARDS_ADDRESSES, request.headers.get(SESSION_HEADER, "")):
        content = request.stream() if has_body else None
        onward = client.build_request(request.method, address + path, headers=headers, content=content)
        try:
            return await client.send(onward, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            replicas.refused(address)
            refusal = error
    assert refusal is not None
    raise refusal


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    finally:
        await answer.aclose()


def _unreachable(error: Exception) -> Response:
    return _problem(
        503,
        f"The reward service does not answer ({type(error).__name__}). Try again shortly; "
        "`python manage.py rewards` runs it, `python manage.py doctor` shows what is wrong.",
        {"Retry-After": "2"},
    )


def _problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(document, status, headers, media_type="application/problem+json")
