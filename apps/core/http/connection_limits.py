"""The connections of one process: how many there may be, in all and from one address, and which go when it is full.

A connection that waits for the head of a request (idle, or half sent) is the first to go, the oldest before the
others. One whose request is being received or answered stays. So thousands of half-open connections push out one
another, and a request that is sent in one go is answered.
"""

import ipaddress
import logging
import resource
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from apps.core.http.client_address import is_trusted_proxy, parse_address

log = logging.getLogger(__name__)

_OTHER_FILES = 256  # descriptors kept for the database, logs, files
_REPORT_SECONDS = 10.0
Key = str


@dataclass(frozen=True)
class ConnectionLimits:
    """What one connection may cost. Times in seconds."""

    connections: int = 5000
    per_address: int = 1000
    head_bytes: int = 32 * 2**10
    line_bytes: int = 16 * 2**10  # the request line, and each header
    headers: int = 100
    head_seconds: float = 20.0  # from the accept, or a request's first byte, to the end of its headers
    idle_seconds: float = 75.0  # between requests; over the 60 s for which proxies keep theirs
    body_bytes_per_second: int = 500  # least, both ways, over each window
    window_seconds: float = 20.0
    linger_seconds: float = 3.0  # for a client to read why it was refused, before the connection is cut
    pipelined: int = 16
    chunk_overhead: int = 16 * 2**10  # of chunk extensions or trailers in a row


class ClientConnection(Protocol):
    @property
    def peer(self) -> str: ...

    def drop(self) -> None: ...

    def check(self, now: float) -> None: ...


@dataclass
class _Address:
    count: int = 0
    waiting: dict[ClientConnection, None] = field(default_factory=dict)


class Connections:
    """admit, wait, busy and leave are called by each connection, on the event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.waiting: dict[ClientConnection, None] = {}  # the oldest first
        self._open: dict[ClientConnection, Key] = {}
        self._addresses: dict[Key, _Address] = {}
        self._refusals: Counter[str] = Counter()
        self._reported = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: ClientConnection) -> bool:
        """Take it in, dropping the oldest that waits where it is full; False where none waits."""
        key = _key(connection.peer)
        address = self._addresses.get(key)
        is_over = bool(key) and address is not None and address.count >= self.limits.per_address
        if (
            is_over
            and address is not None
            and not self._drop_oldest(address.waiting, "too many of one address")
        ):
            return False
        if len(self._open) >= self.limits.connections and not self._drop_oldest(self.waiting, "too many"):
            return False
        self._open[connection] = key
        self._addresses.setdefault(key, _Address()).count += 1
        self.wait(connection)
        return True

    def wait(self, connection: ClientConnection) -> None:
        """It waits for the head of a request from now on."""
        if (key := self._open.get(connection)) is not None:
            self.busy(connection)
            self.waiting[connection] = None
            self._addresses[key].waiting[connection] = None

    def busy(self, connection: ClientConnection) -> None:
        """It has a request that is received or answered."""
        if (key := self._open.get(connection)) is not None:
            self.waiting.pop(connection, None)
            self._addresses[key].waiting.pop(connection, None)

    def leave(self, connection: ClientConnection) -> None:
        if connection not in self._open:
            return
        self.busy(connection)
        key = self._open.pop(connection)
        address = self._addresses[key]
        address.count -= 1
        if not address.count:
            del self._addresses[key]

    def sweep(self, now: float) -> None:
        """Have every connection look at its times. Called each second."""
        for connection in list(self._open):
            connection.check(now)
        if self._refusals and now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            told = ", ".join(f"{count} {why}" for why, count in self._refusals.most_common())
            log.warning("connections (%d open): %s", len(self), told)
            self._refusals.clear()

    def note(self, why: str) -> None:
        """For the log, which has one line for all of some seconds: strangers must not fill it."""
        self._refusals[why] += 1

    def _drop_oldest(self, waiting: dict[ClientConnection, None], why: str) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is None:
            self.note(f"refused: {why}")
            return False
        self.note(f"dropped: {why}")
        self.leave(oldest)
        oldest.drop()
        return True


def _key(peer: str) -> Key:
    """What counts as one address: of IPv6 the network of one line. "" is not counted: proxies of ours, this machine."""
    address = parse_address(peer)
    if address is None or address.is_loopback or is_trusted_proxy(peer):
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as it may go; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:  # a hard limit over what the kernel allows
            log.warning("the limit of open files stays at %d: %s", soft, error)
    return soft if soft != resource.RLIM_INFINITY else 2**20


def most_connections(wanted: int, open_files: int) -> int:
    """`wanted`, or what the limit of open files allows: a request that is passed on takes two."""
    allowed = max((open_files - _OTHER_FILES) // 2, 16)
    if allowed < wanted:
        log.warning(
            "this process may open %d files, enough for %d connections, not for TOUCHSTONE_MAX_CONNECTIONS=%d; "
            "raise LimitNOFILE (systemd) or nofile (ulimits of a container)",
            *(open_files, allowed, wanted),
        )
    return min(wanted, allowed)
