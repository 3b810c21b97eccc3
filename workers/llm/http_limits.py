"""Replies of a server of language models within limits, for the client of openai.

Bytes are counted as they come off the connection. A compressed reply is refused: a few kilobytes of it become
gigabytes, and it was not asked for.
"""

import time
from collections.abc import Iterator

from workers.llm.http import http

MOST_BYTES = 8_000_000  # of a completion, with what is told of its tokens
_MOST_HEADERS = 200


def bounded_client(seconds: float) -> http.Client:
    """seconds: of a call, from its first byte to its last. No redirects are followed, no proxies used."""
    return http.Client(transport=_Bounded(seconds), timeout=seconds, follow_redirects=False, trust_env=False)


class _Bounded(http.HTTPTransport):
    def __init__(self, seconds: float) -> None:
        super().__init__(retries=0, trust_env=True)  # for SSL_CERT_FILE
        self._seconds = seconds

    def handle_request(self, request: http.Request) -> http.Response:
        until = time.monotonic() + self._seconds
        request.headers["Accept-Encoding"] = "identity"
        reply = super().handle_request(request)
        assert isinstance(reply.stream, http.SyncByteStream)
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
        for part in self._stream:
            read += len(part)
            if read > MOST_BYTES:
                raise http.RemoteProtocolError(f"it has more than {MOST_BYTES:,} bytes")
            if time.monotonic() > self._until:
                raise http.ReadTimeout("it takes too long")
            yield part

    def close(self) -> None:
        self._stream.close()


def _wrong_with(reply: http.Response) -> str:
    if len(reply.headers.raw) > _MOST_HEADERS:
        return f"it has more than {_MOST_HEADERS} headers"
    coding = reply.headers.get("Content-Encoding", "identity").strip().lower()
    return (
        "" if coding in ("", "identity") else f"it is compressed ({coding[:60]}); have it answer uncompressed"
    )
