"""Replies of a server of language models within limits, for the client of openai.

Bytes are counted as they come off the connection. A compressed reply is refused: a few kilobytes of it become
gigabytes, and it was not asked for.
"""

import ssl
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from workers.llm.http import http

MOST_BYTES = 8_000_000  # of a completion, with what is told of its tokens
_MOST_PARTS = 20_000  # of a body: each costs time, and a server may send it byte by byte
_MOST_HEADERS = 200
_MOST_HEAD_BYTES = 500_000  # with all interim replies, which nobody reads
_COUNTED = "touchstone.counted"


def bounded_client(seconds: float) -> http.Client:
    """seconds: of a call, from its first byte to its last. No redirects are followed, no proxies used."""
    return http.Client(transport=_Bounded(seconds), timeout=seconds, follow_redirects=False, trust_env=False)


@cache
def _certificates() -> ssl.SSLContext:
    """Those of the machine, or of SSL_CERT_FILE, read once: reading them takes 20 to 40 ms."""
    return http.create_ssl_context()


class _Bounded(http.HTTPTransport):
    def __init__(self, seconds: float) -> None:
        super().__init__(verify=_certificates(), retries=0)
        self._seconds = seconds
        pool: Any = self._pool
        pool._network_backend = _Connects(pool._network_backend)  # httpx has no argument for it

    def handle_request(self, request: http.Request) -> http.Response:
        until = time.monotonic() + self._seconds
        request.headers["Accept-Encoding"] = "identity"
        reply = super().handle_request(request)
        assert isinstance(reply.stream, http.SyncByteStream)
        reply.extensions["network_stream"].get_extra_info(_COUNTED).begin_body()
        return http.Response(
            reply.status_code,
            headers=[
                (name, value) for name, value in reply.headers.raw if name.lower() != b"content-encoding"
            ],
            stream=_Counted(reply.stream, _wrong_with(reply), until),
            extensions=reply.extensions,
        )


class _Counted(http.SyncByteStream):
    """Raises http.HTTPError where more comes than is read. wrong: with its head, or an empty string."""

    def __init__(self, stream: http.SyncByteStream, wrong: str, until: float) -> None:
        self._stream, self._wrong, self._until = stream, wrong, until

    def __iter__(self) -> Iterator[bytes]:
        if self._wrong:
            raise http.RemoteProtocolError(self._wrong)
        read = 0
        for number, part in enumerate(self._stream):
            read += len(part)
            if read > MOST_BYTES:
                raise http.RemoteProtocolError(f"it has more than {MOST_BYTES:,} bytes")
            if number >= _MOST_PARTS:
                raise http.RemoteProtocolError(f"it comes in more than {_MOST_PARTS:,} parts")
            if time.monotonic() > self._until:
                raise http.ReadTimeout("it takes too long")
            yield part

    def close(self) -> None:
        self._stream.close()


class _Connects:
    """The connections of a pool, each counting what comes."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(self, *args: Any, **options: Any) -> "_Connection":
        return _Connection(self._backend.connect_tcp(*args, **options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _Connection:
    """Raises http.RemoteProtocolError where more comes than a head may have, until its body begins."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._head: int | None = 0  # bytes of it so far; None within a body

    def begin_body(self) -> None:
        self._head = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._head is not None and self._head > _MOST_HEAD_BYTES:
            raise http.RemoteProtocolError(f"its head has more than {_MOST_HEAD_BYTES:,} bytes")
        part: bytes = self._stream.read(max_bytes, timeout)
        if self._head is not None:
            self._head += len(part)
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._head = 0  # of what answers this
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *args: Any, **options: Any) -> "_Connection":
        return _Connection(self._stream.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        return self if info == _COUNTED else self._stream.get_extra_info(info)


def _wrong_with(reply: http.Response) -> str:
    if len(reply.headers.raw) > _MOST_HEADERS:
        return f"it has more than {_MOST_HEADERS} headers"
    coding = reply.headers.get("Content-Encoding", "identity").strip().lower()
    return (
        "" if coding in ("", "identity") else f"it is compressed ({coding[:60]}); have it answer uncompressed"
    )
