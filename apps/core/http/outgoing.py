"""The one client for calls that leave this process: what answers may be anyone's machine, and say anything.

    reply = outgoing.request("POST", url, body=body, headers=headers, limits=CallLimits(seconds=10, body=2**20))

Addresses that people typed in are called outside only: a name is looked up once, every address it has is checked
(`addresses`), and the connection goes to one that was, so what the name says a moment later (DNS rebinding) does not
matter. `OPERATOR` is for addresses of the administrator (TOUCHSTONE_OIDC_URL, ...), which are called wherever
they are. Redirects are not followed, cookies not kept, proxies of the environment not used, certificates always
verified.

Of a reply, bytes are counted as they come off the connection, with a limit for its head and one for its body, and the
whole call has an end however slowly they come. It is asked for uncompressed; one that is compressed all the same is
refused: three kilobytes of gzip within gzip become gigabytes.
"""

import contextlib
import functools
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
from django.conf import settings

from apps.core.errors import DomainError
from apps.core.http import public_addresses

MOST_HEAD_BYTES = 64 * 2**10
MOST_HEADERS = 200
MOST_PARTS = 20_000  # of a body: each takes time, however few bytes it has
_CONNECT_SECONDS = 10.0
_LOOKUP_SECONDS = 10.0
_WRITTEN = 64 * 2**10  # bytes at a time, so that one who reads them slowly meets the end of the call
_SCHEMES = ("https", "http")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """seconds: of the whole call. body: bytes of the reply's; 0: it is not read."""

    seconds: float
    body: int


@dataclass(frozen=True, slots=True)
class Reply:
    """headers: httpx's, whose names are looked up in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NotCallable(DomainError):
    """An address that may not be called."""


class NoReply(DomainError):
    """Nothing came that is a reply within the limits. reached: whether anything was sent. detail: for the log."""

    def __init__(self, message: str, *, reached: bool = True, detail: str = "") -> None:
        super().__init__(message, status=502)
        self.reached = reached
        self.detail = detail


class UnreadableReply(NoReply):
    """A reply that is too long, too scattered or compressed: the same call gets the same again."""


class Client:
    """Keeps its connections where `keep` says so. Thread-safe. guarded: for addresses that people typed in.
    logs: False where the caller writes to the log what fails, such as calls that are repeated until one succeeds."""

    def __init__(self, *, guarded: bool = True, keep: bool = False, logs: bool = True) -> None:
        self._logs = logs
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20 if keep else 0)
        self._transport = httpx.HTTPTransport(
            verify=_certificates(), trust_env=False, retries=0, limits=limits
        )
        self._transport._pool._network_backend = _Connects(guarded)  # httpx has no argument for it

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        limits: CallLimits,
    ) -> Reply:
        """The reply, whatever its status. Raises NotCallable and NoReply."""
        sent = {"User-Agent": "touchstone", "Accept": "*/*", **(headers or {}), "Accept-Encoding": "identity"}
        address, call = _read_url(url), _Call(limits)
        token = _current.set(call)
        try:
            return self._send(httpx.Request(method, address, headers=sent, content=body), call)
        except (httpx.HTTPError, UnicodeError) as error:
            # The text of a UnicodeError has the header in it, and so the key.
            shown = type(error).__name__ if isinstance(error, UnicodeError) else repr(error)
            if self._logs:
                log.warning("no reply from %s: %s", address.host, shown)
            reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            cause = None if isinstance(error, UnicodeError) else error
            message = _no_reply(address.host, limits.seconds)
            raise NoReply(message, reached=reached, detail=shown) from cause
        finally:
            _current.reset(token)

    def close(self) -> None:
        self._transport.close()

    def _send(self, request: httpx.Request, call: "_Call") -> Reply:
        seconds = call.limits.seconds
        request.extensions["timeout"] = {
            "connect": min(seconds, _CONNECT_SECONDS), "read": seconds, "write": seconds, "pool": seconds,
        }  # fmt: skip
        response = self._transport.handle_request(request)
        try:
            _check_head(response)
            return Reply(response.status_code, response.headers, _read_body(response, call))
        finally:
            response.close()


def request(
    method: str,
    url: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    limits: CallLimits,
    guarded: bool = True,
) -> Reply:
    """One call on a connection of its own. Raises NotCallable and NoReply."""
    with contextlib.closing(Client(guarded=guarded)) as client:
        return client.request(method, url, body=body, headers=headers, limits=limits)


def check_url(url: str) -> str:
    """The URL, if it may be called; for forms, before it is kept. Raises NotCallable."""
    parts = _read_url(url)
    if parts.userinfo:
        raise NotCallable("The address holds a user or password; send secrets in a header instead.")
    checked_address(parts.host, _port(parts))
    return url


def checked_address(host: str, port: int) -> str:
    """An address of `host` to connect to. Raises NotCallable unless every one it has may be called.

    What is unknown and what is within are told in the same words: no one learns by them what there is inside.
    """
    if not 0 < port < 2**16:
        raise NotCallable(f"There is no port {port}; ports are from 1 to 65535.")
    found = _looked_up(host, port)
    allowed = public_addresses.read_networks(settings.OUTGOING_ALLOW)
    is_all_allowed = True
    for each in found:
        address = public_addresses.read_address(each)
        is_allowed = public_addresses.is_allowed(address, allowed)
        is_all_allowed &= is_allowed
        if not is_allowed and not public_addresses.is_public(address):
            log.warning("%s is at %s, which is not public, so it is not called", host, each)
            raise NotCallable(_unknown(host))
    if not is_all_allowed and port not in settings.OUTGOING_PORTS:
        ports = ", ".join(map(str, sorted(settings.OUTGOING_PORTS)))
        raise NotCallable(
            f"Port {port} is not called; allowed are {ports}. Your administrator can change them in "
            "TOUCHSTONE_OUTGOING_PORTS."
        )
    return found[0]


def addresses_of(host: str, port: int) -> list[str]:
    """All addresses of a name, ascending; whether they may be called is checked when they are. Raises NotCallable."""
    return _looked_up(host, port)


class _Call:
    """What is left of a call's limits. On the connection, `take` is told of every byte that came."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.until = time.monotonic() + limits.seconds
        self._bytes = MOST_HEAD_BYTES

    def begin_body(self) -> None:
        # As much again for how it is framed: sizes of chunks, and what of the head was not used up.
        self._bytes = 2 * self.limits.body + MOST_HEAD_BYTES

    def room(self, wanted: int) -> int:
        if self._bytes <= 0:
            raise httpcore.RemoteProtocolError("more bytes came than the limits of the call")
        return min(wanted, self._bytes)

    def take(self, count: int) -> None:
        self._bytes -= count

    def left(self, timeout: float | None, too_late: type[Exception]) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise too_late(f"no reply within {self.limits.seconds:g} s")
        return left if timeout is None else min(timeout, left)


_current: ContextVar[_Call] = ContextVar("call")


class _Connects(httpcore.SyncBackend):
    """To addresses that were checked and to no other, where it is `guarded`."""

    def __init__(self, guarded: bool) -> None:
        super().__init__()
        self._guarded = guarded

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        address = checked_address(host, port) if self._guarded else host
        timeout = _current.get().left(timeout, httpcore.ConnectTimeout)
        return _Bounded(super().connect_tcp(address, port, timeout, local_address, socket_options))

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        raise NotCallable("A socket of this machine cannot be called.")


class _Bounded(httpcore.NetworkStream):
    """A connection within the limits of the call that uses it now."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        call = _current.get()
        data = self._stream.read(call.room(max_bytes), call.left(timeout, httpcore.ReadTimeout))
        call.take(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        call = _current.get()
        for start in range(0, len(buffer), _WRITTEN):
            part = buffer[start : start + _WRITTEN]
            self._stream.write(part, call.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _current.get().left(timeout, httpcore.ConnectTimeout)
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Certifi's, or the operator's by SSL_CERT_FILE or SSL_CERT_DIR. Made once: it takes 20 ms."""
    return httpx.create_ssl_context()


def _read_url(url: str) -> httpx.URL:
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise NotCallable(f"{url!r} is no URL: {error}.") from error
    if parts.scheme not in _SCHEMES or not parts.host:
        raise NotCallable(f"{url!r} is no address to call; it begins with https:// and names a host.")
    return parts


def _port(parts: httpx.URL) -> int:
    return (443 if parts.scheme == "https" else 80) if parts.port is None else parts.port


def _looked_up(host: str, port: int) -> list[str]:
    """All addresses of a name, within a time: the owner of the name may also run what answers for it."""
    found: list[str] = []

    def look() -> None:
        # An error here, too, is that there is no such name; it is an empty list.
        with contextlib.suppress(OSError, UnicodeError):
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(sorted({str(entry[4][0]) for entry in entries}))

    thread = threading.Thread(target=look, name="touchstone-lookup", daemon=True)
    thread.start()
    call = _current.get(None)
    thread.join(_LOOKUP_SECONDS if call is None else call.left(_LOOKUP_SECONDS, httpcore.ConnectTimeout))
    if thread.is_alive() or not found:
        raise NotCallable(_unknown(host))
    return found


def _check_head(response: httpx.Response) -> None:
    names = response.headers.raw
    if len(names) > MOST_HEADERS:
        raise UnreadableReply(f"Its reply has {len(names):,} headers; at most {MOST_HEADERS} are read.")
    codings = {each.strip().lower() for each in response.headers.get("Content-Encoding", "").split(",")}
    if unread := sorted(codings - {"", "identity"}):
        raise UnreadableReply(
            f"Its reply is compressed (Content-Encoding: {', '.join(unread)[:60]}), which was not requested and is not "
            "read; configure the server to answer uncompressed."
        )


def _read_body(response: httpx.Response, call: _Call) -> bytes:
    most = call.limits.body
    if not most:
        return b""
    size = response.headers.get("Content-Length", "")
    if size.isdecimal() and (len(size) > len(str(most)) or int(size) > most):
        raise UnreadableReply(_too_long(most))
    call.begin_body()
    body = bytearray()
    for parts, part in enumerate(_stream_of(response), start=1):
        body += part
        if len(body) > most:
            raise UnreadableReply(_too_long(most))
        if parts > MOST_PARTS:
            raise UnreadableReply(
                f"Its reply came in more than {MOST_PARTS:,} pieces; have it answer in fewer."
            )
    return bytes(body)


def _stream_of(response: httpx.Response) -> Iterator[bytes]:
    assert isinstance(response.stream, httpx.SyncByteStream)
    yield from response.stream


def _too_long(most: int) -> str:
    return f"Its reply has more than {most:,} bytes, which is the most that is read of one."


def _no_reply(host: str, seconds: float) -> str:
    """One text for all failures, so that it does not reveal which ports of a machine are open."""
    return (
        f"{host} gave no reply that can be read: nothing listens there, it took over {seconds:g} s, or it does not "
        "speak HTTP. Your administrator finds the reason in the log."
    )


def _unknown(host: str) -> str:
    return (
        f"{host} is not called: there is no such host, or it is in a private network. Your administrator can "
        "allow a network in TOUCHSTONE_OUTGOING_ALLOW."
    )
