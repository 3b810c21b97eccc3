"""The reward API behind the public address: calls go on to the `rewards` process, streamed both ways."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

import httpx
from django.conf import settings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

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
_TIMEOUT = httpx.Timeout(600.0, connect=5.0, pool=60.0)  # trainers wait up to 180 s and more


class State(TypedDict):
    client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[State]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx.AsyncClient(timeout=_TIMEOUT, limits=limits, trust_env=False) as client:
        yield {"client": client}


async def forward(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    path = request.scope["raw_path"].decode("ascii") + query
    if settings.REWARDS_URL:  # rewards has a public address of its own; 307 keeps method and body
        return RedirectResponse(settings.REWARDS_URL + path, status_code=307)
    client: httpx.AsyncClient = request.state.client
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    headers = [(name, value) for name, value in request.headers.raw if name not in _HOP_BY_HOP]
    if request.client is not None:
        headers.append((b"x-forwarded-for", request.client.host.encode()))
    onward = client.build_request(
        request.method,
        settings.REWARDS_ADDRESS + path,
        headers=headers,
        content=request.stream() if has_body else None,
    )
    try:
        answer = await client.send(onward, stream=True)
    except httpx.TransportError as error:
        return _unreachable(error)
    response = StreamingResponse(_body(answer), status_code=answer.status_code)
    response.raw_headers = [
        (name, value) for name, value in answer.headers.raw if name.lower() not in _HOP_BY_HOP
    ]
    return response


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    finally:
        await answer.aclose()


def _unreachable(error: httpx.TransportError) -> Response:
    document = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": f"The reward service does not answer ({type(error).__name__}). Try again shortly; "
        "`python manage.py rewards` runs it, `python manage.py doctor` says what is wrong.",
    }
    return JSONResponse(document, 503, {"Retry-After": "2"}, media_type="application/problem+json")
