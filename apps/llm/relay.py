"""A relay through which child processes call a language model.

The child knows an address of this machine and a token for it, and neither the API key nor the address of the server.
Calls go out through the guard of outgoing requests.
"""

import json
import math
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.db import connections

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.llm.calls import MOST_WAITED, SECONDS, RateLimited, call, decrypted_key
from apps.llm.models import LLMConnection

_MOST_REQUEST_BYTES = 4_000_000
_REQUEST_SECONDS = 60.0  # that a child may take to send its request
_FORWARDED_HEADERS = ("content-type", "retry-after", "retry-after-ms")
REFUSED = "x-touchstone-refused"  # a header of replies by the relay itself


@contextmanager
def relay(
    llm_connection: LLMConnection, purpose: str, *, seconds: float = SECONDS, waits: float = MOST_WAITED
) -> Iterator[tuple[str, str]]:
    """Yields a base URL and the token for it. purpose: a `SpendingPurpose`. seconds, waits: see `call`.

    Raises DomainError where the address must not be called, or the API key is lost.
    """
    outgoing.check_url(llm_connection.base_url)
    decrypted_key(llm_connection)
    token = secrets.token_urlsafe(32)
    open_sockets = set[socket.socket]()

    class Relay(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS
        # Head and body are two writes: the second would wait 40 ms for the first.
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            open_sockets.add(self.connection)

        def finish(self) -> None:
            open_sockets.discard(self.connection)
            super().finish()

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            is_number = length.isascii() and length.isdecimal() and len(length) < 12
            size = int(length) if is_number else _MOST_REQUEST_BYTES + 1
            given = self.headers.get("Authorization", "")
            if not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
                self._refuse(HTTPStatus.UNAUTHORIZED, "The token is not the relay's.")
            elif self.path != "/v1/chat/completions":
                self._refuse(HTTPStatus.NOT_FOUND, "The relay answers /v1/chat/completions only.")
            elif size > _MOST_REQUEST_BYTES:
                self._refuse(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"At most {_MOST_REQUEST_BYTES:,} bytes are accepted.",
                )
            else:
                self._forward(self.rfile.read(size))

        def _forward(self, body: bytes) -> None:
            try:
                reply = call(llm_connection, body, purpose=purpose, seconds=seconds, waits=waits)
            except RateLimited as error:
                self._refuse(error.status, error.message, {"retry-after": f"{math.ceil(error.seconds)}"})
            except DomainError as error:
                self._refuse(error.status, error.message)
            else:
                forwarded = {
                    name: reply.headers[name] for name in _FORWARDED_HEADERS if name in reply.headers
                }
                self._send(reply.status, reply.body, forwarded)
            finally:
                connections.close_all()  # of this thread, which ends with the connection

        def _refuse(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
            body = json.dumps({"error": {"message": message}}).encode()
            self._send(status, body, {"content-type": "application/json", REFUSED: "1"} | (headers or {}))

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # the child may have stopped waiting
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the child logs its own calls."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", token
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for client_socket in list(open_sockets):  # without waiting for a slow server
            with suppress(OSError):
                client_socket.shutdown(socket.SHUT_RDWR)
