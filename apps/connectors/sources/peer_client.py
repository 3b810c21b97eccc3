"""Calls of a peer's API: through the guard of outgoing calls, with its rate limits kept to."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.http.outgoing import CallLimits, Client, NoReply, Reply
from workers.errors import InvalidRecord
from workers.schema import RECORD_LIMITS, parse_json

_SECONDS = 60.0  # of a call
_ATTEMPTS = 6
_LONGEST_WAIT = (
    60.0  # seconds that a run waits for a rate limit; for longer ones it ends, and the next one goes on
)
_FIRST_WAIT = 1.0
_RETRIED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, 504)
_LONGEST_SHOWN = 300  # characters of an error of the peer
_UNAUTHORISED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
Query = Mapping[str, str | int | float | Sequence[str] | None]


class PeerRateLimited(DomainError):
    """The peer asks to wait for longer than a run does. retry_after: seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, status=429)
        self.retry_after = retry_after


class PeerRefused(DomainError):
    """The peer answered with an error."""

    def __init__(self, message: str, answered: int) -> None:
        super().__init__(message, status=502)
        self.answered = answered


class UnreadableAnswer(DomainError):
    """An answer that is no JSON, or too much of it: the same call gets the same again."""


class PeerClient:
    """Calls below one address. headers: of every call. pause: waits, and raises where the run is to end."""

    def __init__(self, address: str, headers: Mapping[str, str], pause: Callable[[float], None]) -> None:
        self._address, self._headers, self._pause = address.rstrip("/"), dict(headers), pause
        self._client = Client(keep=True)

    @property
    def host(self) -> str:
        return urlsplit(self._address).netloc

    def close(self) -> None:
        self._client.close()

    def url(self, path: str, query: Query | None = None) -> str:
        return f"{self._address}{path}{_query_string(query)}"

    def get(self, path: str, query: Query | None = None) -> Any:
        """The JSON of an answer. Raises PeerRefused, PeerRateLimited and NoReply."""
        return self._decoded(self.call("GET", path, query=query), path)

    def find(self, path: str, query: Query | None = None) -> Any:
        """As `get`; None where there is nothing at that path."""
        try:
            return self.get(path, query)
        except PeerRefused as error:
            if error.answered in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                return None
            raise

    def send(self, method: str, path: str, document: Any, query: Query | None = None) -> Any:
        reply = self.call(method, path, query=query, document=document)
        return self._decoded(reply, path) if reply.body.strip() else None

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        document: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """The reply of a call that succeeded."""
        url = self.url(path, query)
        sent = {"Accept": "application/json", **self._headers, **(headers or {})}
        body = b""
        if document is not None:
            body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
            sent["Content-Type"] = "application/json"
        reply = self._answered(method, url, body, sent)
        if 200 <= reply.status < 300:
            return reply
        raise PeerRefused(self._refusal(method, path, reply), reply.status)

    def _answered(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        limits = CallLimits(seconds=_SECONDS, body=settings.MAX_RECORD_BYTES)
        for attempt in range(_ATTEMPTS):
            self._pause(0)
            try:
                reply = self._client.request(method, url, body=body, headers=headers, limits=limits)
            except outgoing.UnreadableReply:
                raise
            except NoReply:
                if attempt >= 2:
                    raise
                self._pause(_FIRST_WAIT * 2**attempt)
                continue
            if reply.status not in _RETRIED:
                return reply
            wait = _retry_after(reply.headers.get("Retry-After", ""))
            wait = _FIRST_WAIT * 2**attempt if wait is None else wait
            if wait > _LONGEST_WAIT:
                raise PeerRateLimited(self._limited(wait), wait)
            self._pause(wait)
        if reply.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise PeerRateLimited(self._limited(_LONGEST_WAIT), _LONGEST_WAIT)
        return reply

    def _limited(self, wait: float) -> str:
        return (
            f"{self.host} limits how often it is called and asks to wait {wait:,.0f} s. The next run goes on where "
            "this one stopped; run the connector less often, or raise the limit there."
        )

    def _refusal(self, method: str, path: str, reply: Reply) -> str:
        hint = ""
        if reply.status in _UNAUTHORISED:
            hint = " Check the key of the connector and what it may read."
        elif 300 <= reply.status < 400:
            place = reply.headers.get("Location", "")[:100]
            hint = f" Redirects are not followed: enter the address it points to ({place})."
        elif reply.status == HTTPStatus.NOT_FOUND:
            hint = " Check the address and the names in the connector's fields."
        return f"{self.host} answered {reply.status} to {method} {path[:100]}: {_message(reply.body)}{hint}"

    def _decoded(self, reply: Reply, path: str) -> Any:
        return self.decoded(reply.body, path)

    def decoded(self, body: bytes, path: str) -> Any:
        try:
            return parse_json(body, limits=RECORD_LIMITS)
        except InvalidRecord as error:
            raise UnreadableAnswer(
                f"{self.host} answered {path[:100]} with something else than JSON: {error.message} Check that "
                "the address is that of the API.",
                status=502,
            ) from None


def path_part(value: str) -> str:
    """A value as one part of a path."""
    return quote(value, safe="")


def object_in(value: Any, name: str = "") -> dict[str, Any]:
    """An object, or the one under a name of it; nothing where there is none."""
    found = value.get(name) if name and isinstance(value, dict) else value
    return found if isinstance(found, dict) else {}


def objects_in(value: Any, name: str) -> list[dict[str, Any]]:
    """The objects of a list in an answer. Raises DomainError where there is no list."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise DomainError(
            f"The answer has no list {name!r}. Check that the address is that of the API.", status=502
        )
    return [each for each in found if isinstance(each, dict)]


def _query_string(query: Query | None) -> str:
    if not query:
        return ""
    given = [(name, value) for name, value in query.items() if value not in (None, "", [], ())]
    return f"?{urlencode(given, doseq=True, safe='-_.~', quote_via=quote)}" if given else ""


def _retry_after(value: str) -> float | None:
    """Seconds, from seconds or a date; None where there is neither."""
    if value.strip().isdecimal() and len(value) < 10:
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - time.time())


def _message(body: bytes) -> str:
    """The message of an error, in the shapes that APIs have it in."""
    try:
        found = parse_json(body[: 64 * 2**10], limits=RECORD_LIMITS)
    except InvalidRecord:
        return "no error message in JSON."
    for name in ("message", "detail", "error", "error_code"):
        if isinstance(found, dict) and isinstance(found.get(name), str) and found[name]:
            return " ".join(found[name].split())[:_LONGEST_SHOWN]
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        return _message(json.dumps(found["error"]).encode())
    if isinstance(found, dict) and isinstance(found.get("detail"), list):
        return json.dumps(found["detail"])[:_LONGEST_SHOWN]
    return "no error message."


def parse_time(value: Any) -> datetime | None:
    """A time of an API: ISO 8601, or a number of seconds or milliseconds. Times without a zone are UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value > 10**11 else value
        return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds < 10**11 else None
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def format_time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
