"""One HTTP call with its retries, blocking and async; the shared parts are pure.

Replies are requested uncompressed, and their bytes counted on arrival: the address may belong to another server.
"""

import asyncio
import hashlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from touchstone_client.errors import BadReply, Refused, RewardServiceError, Unavailable, Unreachable
from touchstone_client.retries import RETRIED, Retries, is_worth_retrying, problem_of

logger = logging.getLogger("touchstone_client")
Key = str | Callable[[], str]
Content = Callable[[], Iterator[bytes]]  # a body from its beginning, for each attempt
TIMEOUT = httpx.Timeout(180.0, connect=10.0)
MOST_BYTES = 256 * 2**20  # of a reply
_FRAMING = (b"content-encoding", b"content-length", b"transfer-encoding")
_HEADERS = {"Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Body:
    """content: the body in parts. size: in bytes; None where it is not known, and then it is sent in chunks."""

    content: Content
    size: int | None
    content_type: str = "application/octet-stream"

    def headers(self) -> dict[str, str]:
        length = {} if self.size is None else {"Content-Length": str(self.size)}
        return {"Content-Type": self.content_type, **length}


def headers_of(key: Key, call: str) -> dict[str, str]:
    """call: names the request; the same for every attempt, so that the server counts and does it once."""
    return {"Authorization": f"Bearer {key() if callable(key) else key}", "Idempotency-Key": call}


def session_headers(inputs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Where all inputs are of one session: a header by which a load balancer finds the process that has its cache."""
    sessions = {entry.get("session") for entry in inputs if isinstance(entry, Mapping)}
    if len(sessions) != 1 or not isinstance(session := sessions.pop(), str):
        return {}
    return {"X-Touchstone-Session": hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:16]}


class Caller:
    """Keeps its connections. Close it, or use it as a context manager."""

    def __init__(self, url: str, key: Key, *, retries: Retries, timeout: httpx.Timeout | float) -> None:
        self._key, self._retries = key, retries
        self._client = httpx.Client(
            base_url=url.rstrip("/"), timeout=timeout, headers=_HEADERS, follow_redirects=True
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Body | None = None,
        extra_headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> Any:
        """The decoded reply. Raises RewardServiceError."""
        attempt, name = 1, uuid.uuid4().hex
        more = {**(extra_headers or {}), **({} if body is None else body.headers())}
        while True:
            response, failure = None, None
            try:
                headers = headers_of(self._key, name) | more
                if body is not None:
                    request["content"] = body.content()
                with self._client.stream(method, path, headers=headers, **request) as streamed:
                    reading = BoundedReply(streamed)
                    for part in streamed.iter_raw():
                        reading.take(part)
                    response = reading.response()
            except httpx.TransportError as error:
                failure = error
            if response is not None and not is_worth_retrying(response):
                return read_reply(response)
            if (seconds := self._retries.wait(attempt, response)) is None:
                raise last_error(response, failure, attempt) from failure
            time.sleep(seconds)
            attempt += 1

    def lines(self, path: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The lines of a streamed reply, as they arrive. Raises RewardServiceError."""
        lines = LineReader()
        for part in self.parts(path, params):
            yield from lines.take(part)
        lines.end()

    def parts(self, path: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The bytes of a streamed reply, as they arrive. Attempts are repeated until the reply begins.

        Raises RewardServiceError.
        """
        attempt = 1
        while True:
            response, failure, began = None, None, False
            try:
                headers = headers_of(self._key, uuid.uuid4().hex)
                with self._client.stream("GET", path, headers=headers, params=params) as streamed:
                    reading = BoundedReply(streamed)
                    if streamed.is_success:
                        for part in streamed.iter_raw():
                            began = True
                            yield part
                        return
                    for part in streamed.iter_raw():
                        reading.take(part)
                    response = reading.response()
            except httpx.TransportError as error:
                if began:
                    raise cut_off(error) from error
                failure = error
            if response is not None and not is_worth_retrying(response):
                raise error_of(response)
            if (seconds := self._retries.wait(attempt, response)) is None:
                raise last_error(response, failure, attempt) from failure
            time.sleep(seconds)
            attempt += 1

    def close(self) -> None:
        self._client.close()


class AsyncCaller:
    """As Caller, for asyncio."""

    def __init__(self, url: str, key: Key, *, retries: Retries, timeout: httpx.Timeout | float) -> None:
        self._key, self._retries = key, retries
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/"), timeout=timeout, headers=_HEADERS, follow_redirects=True
        )

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Body | None = None,
        extra_headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> Any:
        """The decoded reply. Raises RewardServiceError."""
        attempt, name = 1, uuid.uuid4().hex
        more = {**(extra_headers or {}), **({} if body is None else body.headers())}
        while True:
            response, failure = None, None
            try:
                headers = headers_of(self._key, name) | more
                if body is not None:
                    request["content"] = _async_parts(body.content())
                async with self._client.stream(method, path, headers=headers, **request) as streamed:
                    reading = BoundedReply(streamed)
                    async for part in streamed.aiter_raw():
                        reading.take(part)
                    response = reading.response()
            except httpx.TransportError as error:
                failure = error
            if response is not None and not is_worth_retrying(response):
                return read_reply(response)
            if (seconds := self._retries.wait(attempt, response)) is None:
                raise last_error(response, failure, attempt) from failure
            await asyncio.sleep(seconds)
            attempt += 1

    async def lines(self, path: str, params: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """As `Caller.lines`."""
        lines = LineReader()
        async for part in self.parts(path, params):
            for line in lines.take(part):
                yield line
        lines.end()

    async def parts(self, path: str, params: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """As `Caller.parts`."""
        attempt = 1
        while True:
            response, failure, began = None, None, False
            try:
                headers = headers_of(self._key, uuid.uuid4().hex)
                async with self._client.stream("GET", path, headers=headers, params=params) as streamed:
                    reading = BoundedReply(streamed)
                    if streamed.is_success:
                        async for part in streamed.aiter_raw():
                            began = True
                            yield part
                        return
                    async for part in streamed.aiter_raw():
                        reading.take(part)
                    response = reading.response()
            except httpx.TransportError as error:
                if began:
                    raise cut_off(error) from error
                failure = error
            if response is not None and not is_worth_retrying(response):
                raise error_of(response)
            if (seconds := self._retries.wait(attempt, response)) is None:
                raise last_error(response, failure, attempt) from failure
            await asyncio.sleep(seconds)
            attempt += 1

    async def close(self) -> None:
        await self._client.aclose()


async def _async_parts(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


class LineReader:
    """Lines of a stream from its parts, each with its newline. Raises BadReply for a line over the limit, and for a
    stream that ends within a line: what sent it was cut off."""

    def __init__(self) -> None:
        self._open = bytearray()

    def take(self, part: bytes) -> Iterator[bytes]:
        *whole, rest = part.split(b"\n")
        for line in whole:
            yield bytes(self._open) + line + b"\n"
            self._open.clear()
        self._open += rest
        if len(self._open) > MOST_BYTES:
            raise BadReply(f"A line of the reply has more than {MOST_BYTES:,} bytes.")

    def end(self) -> None:
        if self._open:
            raise cut_off("it ends within a line")


def cut_off(reason: object) -> BadReply:
    return BadReply(f"The reply was cut off ({reason}); what was read is not all. Send the request again.")


class BoundedReply:
    """A reply that is read up to the limits. Raises BadReply."""

    def __init__(self, response: httpx.Response) -> None:
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise BadReply(
                f"The reply is compressed ({coding[:60]}), which was not requested; a proxy between client "
                "and server may be the cause."
            )
        self._response, self._body = response, bytearray()

    def take(self, part: bytes) -> None:
        self._body += part
        if len(self._body) > MOST_BYTES:
            raise BadReply(f"The reply has more than {MOST_BYTES:,} bytes; send fewer items in a request.")

    def response(self) -> httpx.Response:
        """As httpx returns one that it read itself."""
        kept = [(name, value) for name, value in self._response.headers.raw if name.lower() not in _FRAMING]
        return httpx.Response(
            self._response.status_code,
            headers=kept,
            content=bytes(self._body),
            request=self._response.request,
        )


def read_reply(response: httpx.Response) -> Any:
    if response.status_code == 204:
        return None
    if response.is_success:
        if warning := response.headers.get("X-Touchstone-Warning"):
            logger.warning("%s", warning)
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise BadReply(f"The reply is not JSON: {response.text[:200]!r}") from error
    raise error_of(response)


def error_of(response: httpx.Response) -> RewardServiceError:
    """The error of a failed reply, with its problem document where there is one."""
    status = response.status_code
    problem = problem_of(response)
    detail = problem.get("detail") or response.text[:200] or response.reason_phrase
    pointer = f" (at {problem['pointer']})" if problem.get("pointer") else ""
    kind = Unavailable if status in RETRIED or status >= 500 else Refused
    return kind(f"{status}: {detail}{pointer}", status=status, problem=problem)


def last_error(
    response: httpx.Response | None, failure: httpx.TransportError | None, attempts: int
) -> RewardServiceError:
    if response is not None:
        return error_of(response)
    return Unreachable(f"The reward service did not respond after {attempts} attempts: {failure!r}")
