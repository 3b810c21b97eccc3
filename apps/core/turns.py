"""How many requests of one caller are worked on at once; the others wait, without a thread or a connection.

Django gives every request a thread and, while it reads the database, one of TOUCHSTONE_DB_POOL connections: a key with
a hundred open requests would leave none for anybody else. A request counts from when its body is here, so that a slow
upload keeps no other one waiting. Large and packed bodies take an interpreter long: of those one at a time, by caller.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.core.client_address import client_address

MOST_WAITING = 100  # of one caller; more are refused immediately
MOST_SECONDS = 60.0  # a request waits
PER_ADDRESS = 8  # times as many: a stranger may send another made-up key with every request
LARGE = 64 * 2**10  # bytes of a body
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK")  # gzip, zstd, zip: how it begins
_RETRY_AFTER = "5"


class TooManyWaiting(Exception):
    pass


@dataclass(eq=False, slots=True)
class _Turns:
    """Of one caller. users: requests that work or wait."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass(eq=False, slots=True)
class _Body:
    """What is known of a request's body. size: bytes so far."""

    size: int = 0
    is_here: bool = False
    is_packed: bool = False

    def add(self, message: Message) -> None:
        part = message.get("body", b"")
        if not self.size:
            self.is_packed = part.startswith(_PACKED)
        self.size += len(part)
        self.is_here = not message.get("more_body", False)

    @property
    def is_large(self) -> bool:
        return self.is_packed or self.size > LARGE


@dataclass(eq=False, slots=True)
class CallerTurns:
    """The ASGI application `app`, with at most `at_once` requests of a caller in it."""

    app: ASGIApp
    at_once: int
    cookie: str  # name of the session's
    _by_caller: dict[str, _Turns] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, turn = _Body(), AsyncExitStack()

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not body.is_here:
                body.add(message)
                if body.is_here:
                    await turn.enter_async_context(self._among(self._limits(scope, body)))
            return message

        async with turn:
            try:
                await self.app(scope, received, send)
            except TooManyWaiting:
                await self._refuse(scope, receive, send)

    def _limits(self, scope: Scope, body: _Body) -> dict[str, int]:
        """Requests at once, by what the caller is known by."""
        limits = {}
        if credential := _credential(scope, self.cookie):
            if body.is_large:  # first: while it waits for this one, small ones have the others
                limits[f"large of {credential}"] = 1
            limits[f"credential {credential}"] = self.at_once
        return limits | {f"address {client_address(scope)}": PER_ADDRESS * self.at_once}

    @asynccontextmanager
    async def _among(self, limits: Mapping[str, int]) -> AsyncIterator[None]:
        held: list[_Turns] = []
        try:
            for caller, at_once in limits.items():
                turns = self._by_caller.setdefault(caller, _Turns(asyncio.Semaphore(at_once)))
                turns.users += 1
                try:
                    await self._take(turns, at_once)
                    held.append(turns)
                except BaseException:
                    self._leave(caller, turns)
                    raise
            yield
        finally:
            for caller, turns in zip(limits, held, strict=False):
                turns.free.release()
                self._leave(caller, turns)

    async def _take(self, turns: _Turns, at_once: int) -> None:
        if turns.users > at_once + MOST_WAITING:
            raise TooManyWaiting
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await turns.free.acquire()
        except TimeoutError:
            raise TooManyWaiting from None

    def _leave(self, caller: str, turns: _Turns) -> None:
        turns.users -= 1
        if not turns.users:
            del self._by_caller[caller]

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = (
            f"Your other requests are still being worked on, {self.at_once} at once "
            "(TOUCHSTONE_REQUESTS_AT_ONCE). Send this one again later."
        )
        headers = {"Retry-After": _RETRY_AFTER}
        if not scope["path"].startswith(("/api/", "/v1/", "/scim/")):
            await PlainTextResponse(detail, 429, headers)(scope, receive, send)
            return
        document = {"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": detail}
        await JSONResponse(document, 429, headers, media_type="application/problem+json")(
            scope, receive, send
        )


def _credential(scope: Scope, cookie: str) -> str:
    """What a caller signs in with, as a hash; "" without."""
    values: defaultdict[bytes, bytes] = defaultdict(bytes, scope["headers"])
    secret = values[b"authorization"]
    if not secret:
        pairs = (pair.strip().partition(b"=") for pair in values[b"cookie"].split(b";"))
        secret = next((value for name, _, value in pairs if name == cookie.encode()), b"")
    return hashlib.sha256(secret).hexdigest() if secret else ""
