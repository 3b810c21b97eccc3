"""How many requests of one caller are worked on at once; the others wait, without a thread or a connection.

Django gives every request a thread and, while it reads the database, one of TOUCHSTONE_DB_POOL connections: a key with
a hundred open requests would leave none for anyone else. A request counts from when its body is here, so that a slow
upload keeps no other one waiting. Large and packed bodies take long to read, partly in code that no other thread can
interrupt: of those a caller has one at a time.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.core.http.client_address import client_address

MOST_WAITING = 100  # of one caller; more are refused immediately
MOST_SECONDS = 60.0  # a request waits
PER_ADDRESS = 8  # times as many: a stranger may send another made-up key with every request
LARGE = 64 * 2**10  # bytes from which a body is large
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK")  # gzip, zstd, zip: how it begins
_RETRY_AFTER = "5"


class TooManyWaiting(Exception):
    """Its text says which limit was met."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """key: what is counted. seconds: a request waits for its turn."""

    key: str
    at_once: int
    seconds: float
    words: str


@dataclass(eq=False, slots=True)
class _Turns:
    """Of one limit. users: requests that work or wait."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass(eq=False, slots=True)
class _Body:
    """What is known of a request's body. size: bytes so far."""

    is_form: bool  # of several parts, of which any may be packed
    size: int = 0
    beginning: bytes = b""
    is_here: bool = False

    def add(self, message: Message) -> None:
        part = message.get("body", b"")
        self.beginning = (self.beginning + part[:4])[:4]
        self.size += len(part)
        self.is_here = not message.get("more_body", False)

    @property
    def is_large(self) -> bool:
        return self.is_form or self.size > LARGE or self.beginning.startswith(_PACKED)


@dataclass(eq=False, slots=True)
class CallerTurns:
    """The ASGI application `app`, with at most `at_once` requests of a caller in it.

    cookie: name of the session's. large_seconds: a large body waits until the one before it is read.
    """

    app: ASGIApp
    at_once: int
    cookie: str
    large_seconds: float = MOST_SECONDS
    _by_caller: dict[str, _Turns] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        body = _Body(is_form=headers.get(b"content-type", b"").lower().startswith(b"multipart/"))
        turns = AsyncExitStack()

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not body.is_here:
                body.add(message)
                if body.is_here:
                    for limit in self._limits(scope, body):
                        await turns.enter_async_context(self._turn(limit))
            return message

        async with turns:
            try:
                await self.app(scope, received, send)
            except TooManyWaiting as error:
                await _refuse(str(error), scope, receive, send)

    def _limits(self, scope: Scope, body: _Body) -> list[_Limit]:
        """What holds for a request whose body is here, by what its caller is known by."""
        each = f"{self.at_once} at the same time (TOUCHSTONE_REQUESTS_AT_ONCE)"
        limits = []
        if credential := _credential(scope, self.cookie):
            if body.is_large:  # first: while it waits for this one, small ones have the others
                words = "One large or packed body at a time"
                limits.append(_Limit(f"large of {credential}", 1, self.large_seconds, words))
            limits.append(_Limit(f"credential {credential}", self.at_once, MOST_SECONDS, each))
        address = f"address {client_address(scope)}"
        return [*limits, _Limit(address, PER_ADDRESS * self.at_once, MOST_SECONDS, each)]

    @asynccontextmanager
    async def _turn(self, limit: _Limit) -> AsyncIterator[None]:
        turns = self._by_caller.setdefault(limit.key, _Turns(asyncio.Semaphore(limit.at_once)))
        turns.users += 1
        try:
            if turns.users > limit.at_once + MOST_WAITING:
                raise TooManyWaiting(limit.words)
            try:
                async with asyncio.timeout(limit.seconds):
                    await turns.free.acquire()
            except TimeoutError:
                raise TooManyWaiting(limit.words) from None
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._by_caller[limit.key]


async def _refuse(limit: str, scope: Scope, receive: Receive, send: Send) -> None:
    detail = f"Your other requests are still being worked on. {limit}; send this one again later."
    headers = {"Retry-After": _RETRY_AFTER}
    if not scope["path"].startswith(("/api/", "/v1/", "/scim/")):
        await PlainTextResponse(detail, 429, headers)(scope, receive, send)
        return
    document = {"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": detail}
    await JSONResponse(document, 429, headers, media_type="application/problem+json")(scope, receive, send)


def _credential(scope: Scope, cookie: str) -> str:
    """What a caller signs in with, as a hash; "" without."""
    values: defaultdict[bytes, bytes] = defaultdict(bytes, scope["headers"])
    secret = values[b"authorization"]
    if not secret:
        pairs = (pair.strip().partition(b"=") for pair in values[b"cookie"].split(b";"))
        secret = next((value for name, _, value in pairs if name == cookie.encode()), b"")
    return hashlib.sha256(secret).hexdigest() if secret else ""
