"""Calls to addresses that people typed in: never to this machine or a network behind it.

    status = outgoing.post(webhook.url, body=..., headers=...)

A name is looked up once, every address it has is checked, and the connection goes to one that was: what the name
says a moment later (DNS rebinding) does not matter. Redirects are not followed, and proxies of the environment not
used. Addresses of the operator (TOUCHSTONE_REWARDS_ADDRESS, DATABASE_URL, ...) are not people's, and do not come here.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx
from django.conf import settings

from apps.core.errors import DomainError

TIMEOUT = httpx.Timeout(10.0)
MOST_SECONDS = 30.0  # of a connection: one that answers a byte at a time is no answer
_SCHEMES = ("https", "http")


class _Guarded(httpcore.SyncBackend):
    """Connects to addresses that were checked, and to no other. seconds: of a connection."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        address = checked_address(host, port)
        stream = super().connect_tcp(address, port, timeout, local_address, socket_options)
        return _Timed(stream, self._seconds, time.monotonic() + self._seconds)

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        raise DomainError("A socket of this machine cannot be called.")


class _Timed(httpcore.NetworkStream):
    """A connection that ends at a moment, however often something arrives. seconds: it had."""

    def __init__(self, stream: httpcore.NetworkStream, seconds: float, until: float) -> None:
        self._stream, self._seconds, self._until = stream, seconds, until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._left(timeout, httpcore.ConnectTimeout)
        tls = self._stream.start_tls(ssl_context, server_hostname, left)
        return _Timed(tls, self._seconds, self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None, too_late: type[Exception]) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise too_late(f"no answer within {self._seconds:g} s")
        return left if timeout is None else min(timeout, left)


def client(*, seconds: float | None = None, **options: Any) -> httpx.Client:
    """An httpx client that refuses addresses within. Its requests raise DomainError for one that is refused.

    seconds: that a call may take, for services that are slow by nature. Connections are then not used again.
    """
    limits = httpx.Limits(max_keepalive_connections=0 if seconds else None)
    transport = httpx.HTTPTransport(retries=0, trust_env=False, limits=limits)
    transport._pool._network_backend = _Guarded(seconds or MOST_SECONDS)  # httpx has no argument for it
    timeout = httpx.Timeout(seconds, connect=10.0) if seconds else TIMEOUT
    return httpx.Client(
        transport=transport, timeout=timeout, follow_redirects=False, trust_env=False, **options
    )


def post(url: str, *, body: str, headers: dict[str, str]) -> int:
    """The status of the answer; what else a stranger's machine sends, however much, is not read.

    Raises DomainError where there was none.
    """
    try:
        with client() as http, http.stream("POST", url, content=body, headers=headers) as reply:
            return reply.status_code
    except httpx.HTTPError as error:
        raise DomainError(f"{type(error).__name__}: {error}".rstrip(": ")) from error


def check_url(url: str) -> str:
    """The URL, if it may be called; for forms, before it is kept. Raises DomainError."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise DomainError(f"{url!r} is no URL: {error}.") from error
    if parts.scheme not in _SCHEMES or not parts.host:
        raise DomainError(f"{url!r} is no address to call; it begins with https:// and names a host.")
    if parts.userinfo:
        raise DomainError("The address holds a user or password; send secrets in a header instead.")
    checked_address(
        parts.host, (443 if parts.scheme == "https" else 80) if parts.port is None else parts.port
    )
    return url


def checked_address(host: str, port: int) -> str:
    """An address of `host` to connect to. Raises DomainError unless every one it has is outside."""
    if not 0 < port < 2**16:
        raise DomainError(f"There is no port {port}; ports are from 1 to 65535.")
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (socket.gaierror, UnicodeError) as error:
        raise DomainError(f"There is no host {host!r}: {error}.") from error
    allowed = [ipaddress.ip_network(each) for each in settings.OUTGOING_ALLOW]
    for each in sorted(found):
        address = _unwrapped(ipaddress.ip_address(each.partition("%")[0]))
        inside = any(address in network for network in allowed if network.version == address.version)
        if (address.is_multicast or not address.is_global) and not inside:
            raise DomainError(
                f"{host} is at {each}, which is within this network, so it is not called. Whoever runs this server "
                "can allow it in TOUCHSTONE_OUTGOING_ALLOW."
            )
    return sorted(found)[0]


def _unwrapped(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that an IPv6 one stands for, where it does: mapped, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        return inner or address
    return address


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
