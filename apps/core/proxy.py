"""The reward API behind the public address: calls go on to the `rewards` process, streamed both ways."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

import httpx
from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from apps.core.logs import request_id

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# RFC 9110, 7.6.1: these belong to one connection.
_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
_NOT_PASSED_ON = {*_HOP_BY_HOP, b"x-request-id"}
_REFUSED_FOR = 2.0  # seconds
_TIMEOUT = httpx.Timeout(600.0, connect=5.0, pool=60.0)  # trainers wait up to 180 s and more

log = logging.getLogger(__name__)


class State(TypedDict):
    client: httpx.AsyncClient
    replicas: "Replicas"


class Replicas:
    """The addresses of `rewards`, taken in turn; one that refused a connection is asked last for a while."""

    def __init__(self) -> None:
        self._refused: dict[str, float] = {}
        self._next = 0

    def in_turn(self, addresses: list[str]) -> list[str]:
        self._next = (self._next + 1) % len(addresses)
        order = addresses[self._next :] + addresses[: self._next]
        return sorted(order, key=lambda each: time.monotonic() < self._refused.get(each, 0.0))

    def refused(self, address: str) -> None:
        self._refused[address] = time.monotonic() + _REFUSED_FOR


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[State]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx.AsyncClient(timeout=_TIMEOUT, limits=limits, trust_env=False) as client:
        yield {"client": client, "replicas": Replicas()}


async def forward(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    path = request.scope["raw_path"].decode("ascii") + query
    if settings.REWARDS_URL:  # rewards has a public address of its own; 307 keeps method and body
        return RedirectResponse(settings.REWARDS_URL + path, status_code=307)
    headers = [(name, value) for name, value in request.headers.raw if name not in _NOT_PASSED_ON]
    headers.append((b"x-request-id", request_id(request.headers.get("x-request-id")).encode()))
    if request.client is not None:
        headers.append((b"x-forwarded-for", request.client.host.encode()))
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
        (name, value) for name, value in answer.headers.raw if name.lower() not in _HOP_BY_HOP
    ]
    return response


async def _send(request: Request, path: str, headers: list[tuple[bytes, bytes]]) -> httpx.Response:
    """To the first that takes the connection: until then nothing of the body is read, so another one can have it."""
    client: httpx.AsyncClient = request.state.client
    replicas: Replicas = request.state.replicas
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    refusal: httpx.TransportError | None = None
    for address in replicas.in_turn(settings.REWARDS_ADDRESSES):
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
    document = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": f"The reward service does not answer ({type(error).__name__}). Try again shortly; "
        "`python manage.py rewards` runs it, `python manage.py doctor` says what is wrong.",
    }
    return JSONResponse(document, 503, {"Retry-After": "2"}, media_type="application/problem+json")
