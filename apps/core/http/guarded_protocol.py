"""uvicorn's HTTP protocol with bounds on what a stranger may send, and on how slowly.

httptools keeps a header until it ends, whatever its length; uvicorn waits forever for the rest of a request, and
queues what is pipelined without an end. The times are looked at once a second for all connections
(`Connections.sweep`).
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apps.core.http.connection_limits import Connections
from apps.core.http.security_headers import bare_headers

_SLICE = 16 * 2**10  # bytes given to the parser in one go, so that a limit is noticed soon after it is passed
# Bytes of framing for each byte of a chunked body: chunks of one byte pass, padding does not.
_OVERHEAD_RATIO = 16
_RETRY_AFTER = "5"
_MOST_DISCARDED = 2**18  # bytes that are read of a request which was refused, so that its sender reads why


class _Refused(Exception):
    """Raised in a callback of the parser, which then stops; what is answered is in `_refusal`."""


class GuardedProtocol(HttpToolsProtocol):
    def __init__(self, registry: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._registry, self._limits = registry, registry.limits
        self._refusal: tuple[int, str] | None = None
        self._cut_at: float | None = None  # when it is aborted whatever happens
        self._discarded = 0
        self._in_body = self._is_upgrade = self._is_primed = False
        # Of the head that comes.
        self._head_since: float | None = None
        self._head_raw = self._head_size = self._head_count = 0
        # Of the body that comes.
        self._is_chunked = False
        self._window_since, self._window_bytes = 0.0, 0
        self._body_bytes = self._overhead = self._overhead_run = 0
        # Of what is written and not read by the client.
        self._unread, self._unread_since, self._drained = 0, 0.0, 0

    @property
    def peer(self) -> str:
        return self.client[0] if self.client else ""

    # Connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._head_since = self.loop.time()
        if not self._registry.admit(self):
            self._refuse(503, "This server has too many connections. Try again in a moment.", retry=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.leave(self)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Cut: someone else needs the place."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._cut_at is not None:
            self._discard(len(data))
            return
        place = 0
        while place < len(data) and self._cut_at is None and self.parser is not None:
            size = len(data) if self._in_body and not self._is_chunked else _SLICE
            self._feed(data[place : place + size])
            place += size

    # Parsing

    def _feed(self, data: bytes) -> None:
        was_in_body, bytes_before = self._in_body, self._body_bytes
        if not was_in_body:
            if self._head_since is None:
                self._head_since = self.loop.time()
            self._head_raw += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            status, detail = self._refusal or (400, f"This is not a request by HTTP/1.1: {error}.")
            self._refuse(status, detail)
            return
        if self._in_body and was_in_body:
            self._count_overhead(len(data), self._body_bytes - bytes_before)
        elif not self._in_body and self._head_raw > self._limits.head_bytes:
            self._refuse(*self._too_large())

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Go on as if Upgrade (such as h2c, which Java and curl send along) had not been sent, which RFC 9110, 7.8
        allows. httptools takes what follows such a head for another protocol: so a new parser is shown how the body is
        framed, and reads on."""
        framing = [
            name + b": " + value
            for name, value in self.headers
            if name in (b"content-length", b"transfer-encoding")
        ]
        self._is_upgrade, self._is_primed = False, True
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.parser.feed_data(b"\r\n".join([b"POST / HTTP/1.1", *framing, b"", b""]))
        self._is_primed = False
        if not self._is_chunked and not any(int(line.split(b":")[1]) for line in framing):
            self.on_message_complete()
        if rest:
            self._feed(rest)

    def on_message_begin(self) -> None:
        if self._is_primed:
            return
        super().on_message_begin()
        if self._head_since is None:  # it came together with the end of the one before
            self._head_since, self._head_raw = self.loop.time(), 1
        self._head_size = self._head_count = 0
        self._is_chunked = False

    def on_url(self, url: bytes) -> None:
        if self._is_primed:
            return
        super().on_url(url)
        limit = self._limits.line_bytes
        if len(self.url) > limit:
            self._stop(414, f"The address of the request is over the limit of {limit} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_primed:
            return
        limits = self._limits
        size = len(name) + len(value)
        self._head_size += size + 4
        self._head_count += 1
        if (
            size > limits.line_bytes
            or self._head_size > limits.head_bytes
            or self._head_count > limits.headers
        ):
            self._stop(*self._too_large())
        if self._in_body:
            return  # a trailer must not become a header of a request that is being answered
        if name.lower() == b"transfer-encoding":
            self._is_chunked = True
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_primed:
            return
        self._check_head()
        if self._is_answering and len(self.pipeline) >= self._limits.pipelined:
            self._stop(
                429, f"More than {self._limits.pipelined} requests wait for their turn on this connection."
            )
        self._in_body = True
        self._head_raw, self._head_since = 0, None
        self._head_size = self._head_count = 0  # of trailers from here on
        self._window_since, self._window_bytes = self.loop.time(), 0
        self._body_bytes = self._overhead = self._overhead_run = 0
        self._registry.busy(self)
        super().on_headers_complete()
        self._is_upgrade = self.parser.should_upgrade()

    def _check_head(self) -> None:
        """What a proxy before us and we might read differently, and what has no meaning here."""
        hosts = [value for name, value in self.headers if name == b"host"]
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            self._stop(400, "A request has one Host header.")
        if version not in ("1.0", "1.1"):
            self._stop(505, "This server speaks HTTP/1.1.")
        if self._is_chunked and version == "1.0":
            self._stop(400, "A request by HTTP/1.0 has no Transfer-Encoding.")
        if self._is_chunked and [v.lower() for n, v in self.headers if n == b"transfer-encoding"] != [
            b"chunked"
        ]:
            self._stop(501, "The only Transfer-Encoding that is read is chunked.")
        if method in (b"CONNECT", b"TRACE"):
            self._stop(501, f"This server does not know {method.decode()}.")
        if not self.url.startswith(b"/") and not (self.url == b"*" and method == b"OPTIONS"):
            self._check_absolute(hosts[0] if hosts else b"")

    def _check_absolute(self, host: bytes) -> None:
        """`GET http://HOST/path`: as if `/path` had been asked of HOST, which must be the Host header's."""
        scheme, _, rest = self.url.partition(b"://")
        authority = rest.split(b"/", 1)[0].split(b"?", 1)[0]
        if scheme.lower() not in (b"http", b"https") or authority.lower() != host.lower():
            self._stop(400, "The address of the request is neither a path nor one of its Host header.")

    def on_body(self, body: bytes) -> None:
        self._window_bytes += len(body)
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_primed or self._is_upgrade:
            return
        self._in_body = False
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:  # answered before all of it had come
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        elif not self._in_body:
            self._wait_for_head()
        self._window_since = self.loop.time()

    def _wait_for_head(self) -> None:
        if self._head_raw:  # some of the next request is here already
            self._head_since = self.loop.time()
        self._registry.wait(self)

    def _count_overhead(self, came: int, of_body: int) -> None:
        if not self._is_chunked:
            return
        self._overhead += came - of_body
        self._overhead_run = 0 if of_body else self._overhead_run + came
        allowed = self._limits.chunk_overhead
        if self._overhead_run > allowed or self._overhead > 4 * allowed + _OVERHEAD_RATIO * self._body_bytes:
            self._refuse(400, f"The chunks of the body have extensions or trailers over {allowed} bytes.")

    # Times

    def check(self, now: float) -> None:
        limits = self._limits
        if self._cut_at is not None:
            if now >= self._cut_at:
                self.transport.abort()
        elif self._is_unread_for_long(now):
            self._registry.note("dropped: its client does not read the answer")
            self.transport.abort()
        elif self._in_body:
            self._check_body(now)
        elif self._is_answering:
            if self._head_since is not None:
                self._head_since = now  # it is not read meanwhile
        elif self._head_since is not None and now - self._head_since > limits.head_seconds:
            if self._head_raw:
                detail = f"The headers of the request did not arrive within {limits.head_seconds:g} s."
                self._refuse(408, detail)
            else:
                self._registry.note("dropped: no request came")
                self.transport.abort()

    def _check_body(self, now: float) -> None:
        if self.cycle.response_complete:  # answered already, such as 413: what still comes is thrown away
            if now - self._window_since > self._limits.linger_seconds:
                self._registry.note("dropped: it kept sending after the response")
                self.transport.abort()
            return
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:  # it is we who are slow
            self._window_since, self._window_bytes = now, 0
            return
        seconds, rate = self._limits.window_seconds, self._limits.body_bytes_per_second
        if now - self._window_since < seconds:
            return
        if self._window_bytes < rate * seconds:
            self._refuse(
                408, f"The body came with less than {rate} bytes a second for {seconds:g} s; send it again."
            )
        self._window_since, self._window_bytes = now, 0

    def _is_unread_for_long(self, now: float) -> bool:
        """Whether the client takes less than the least rate of an answer that waits for it."""
        size = self.transport.get_write_buffer_size()
        is_waiting = size > 0 and (
            self.flow.write_paused or not self._is_answering or self.transport.is_closing()
        )
        if not is_waiting:
            self._unread, self._unread_since = 0, now
            return False
        if not self._unread:
            self._unread_since, self._drained = now, 0
        self._drained += max(self._unread - size, 0)
        self._unread = size
        if now - self._unread_since < self._limits.window_seconds:
            return False
        is_stalled = self._drained < self._limits.body_bytes_per_second * self._limits.window_seconds
        self._unread_since, self._drained = now, 0
        return is_stalled

    @property
    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    # Refusing

    def _too_large(self) -> tuple[int, str]:
        limits = self._limits
        return 431, (
            f"The headers of the request are over the limit: {limits.headers} headers, {limits.line_bytes} bytes for "
            f"one, {limits.head_bytes} bytes together."
        )

    def _stop(self, status: int, detail: str) -> None:
        self._refusal = (status, detail)
        raise _Refused(detail)

    def _refuse(self, status: int, detail: str, *, retry: bool = False) -> None:
        """Answer, where nothing was begun, and close. What the client still sends meanwhile is thrown away: closing
        with something unread would take the answer from it."""
        self._registry.note(f"refused: {status} {HTTPStatus(status).phrase}")
        self._registry.busy(self)
        self._cut_at = self.loop.time() + self._limits.linger_seconds
        self._unset_keepalive_if_required()
        is_first = not self._is_answering
        if self._is_answering and self._in_body and not self.pipeline:
            is_first = not self.cycle.response_started
            self._disconnect_application()
        if not is_first:
            self.transport.close()  # after what is written; an answer that is under way ends here
            return
        self.flow.resume_reading()
        self.transport.write(_answer(status, detail, retry=retry))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _MOST_DISCARDED:
            self.flow.pause_reading()  # until it is cut

    def _disconnect_application(self) -> None:
        self.cycle.disconnected = True
        self.cycle.message_event.set()


def _answer(status: int, detail: str, *, retry: bool) -> bytes:
    phrase = HTTPStatus(status).phrase
    document = {"type": "about:blank", "title": phrase, "status": status, "detail": detail}
    body = json.dumps(document).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([(b"retry-after", _RETRY_AFTER.encode())] if retry else []),
        *bare_headers(),
    ]
    lines = [f"HTTP/1.1 {status} {phrase}".encode(), *(name + b": " + value for name, value in headers)]
    return b"\r\n".join([*lines, b"", body])
