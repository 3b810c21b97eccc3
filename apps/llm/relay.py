"""What a child process asks a language model through: it is given an address of this machine and a word for it, and
knows neither the key nor where the model is. The call goes out by the guard of outgoing calls.
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
from apps.llm.calls import MOST_WAITED, SECONDS, TooMany, call, decrypted_key
from apps.llm.models import LLMConnection

_MOST_ASKED = 4_000_000  # bytes
_SILENCE = 60.0  # seconds that who asks may take to say it
_PASSED_ON = ("content-type", "retry-after", "retry-after-ms")
REFUSED = "x-touchstone-refused"  # a header of what the server itself never saw


@contextmanager
def relay(
    llm_connection: LLMConnection, purpose: str, *, seconds: float = SECONDS, waits: float = MOST_WAITED
) -> Iterator[tuple[str, str]]:
    """A base URL, and the key it wants. purpose: what the calls are written down for (`SpendingPurpose`). seconds,
    waits: of each call, see `call`.

    Raises DomainError where the model may not be called, or its key is lost.
    """
    outgoing.check_url(llm_connection.base_url)
    decrypted_key(llm_connection)
    word = secrets.token_urlsafe(32)
    under_way = set[socket.socket]()

    class Relay(BaseHTTPRequestHandler):
        timeout = _SILENCE

        def setup(self) -> None:
            super().setup()
            under_way.add(self.connection)

        def finish(self) -> None:
            under_way.discard(self.connection)
            super().finish()

        def do_POST(self) -> None:
            told = self.headers.get("Content-Length", "0")
            size = int(told) if told.isascii() and told.isdecimal() and len(told) < 12 else _MOST_ASKED + 1
            given = self.headers.get("Authorization", "")
            if not secrets.compare_digest(given.encode(), f"Bearer {word}".encode()):
                self._refuse(HTTPStatus.UNAUTHORIZED, "This word is not the relay's.")
            elif self.path != "/v1/chat/completions":
                self._refuse(HTTPStatus.NOT_FOUND, "Chat completions only.")
            elif size > _MOST_ASKED:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {_MOST_ASKED:,} bytes.")
            else:
                self._pass_on(self.rfile.read(size))

        def _pass_on(self, body: bytes) -> None:
            try:
                reply = call(llm_connection, body, purpose=purpose, seconds=seconds, waits=waits)
            except TooMany as error:
                self._refuse(error.status, error.message, {"retry-after": f"{math.ceil(error.seconds)}"})
            except DomainError as error:
                self._refuse(error.status, error.message)
            else:
                passed = {name: reply.headers[name] for name in _PASSED_ON if name in reply.headers}
                self._answer(reply.status, reply.body, passed)
            finally:
                connections.close_all()  # of this thread, which ends with the connection

        def _refuse(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
            body = json.dumps({"error": {"message": message}}).encode()
            self._answer(status, body, {"content-type": "application/json", REFUSED: "1"} | (headers or {}))

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # who asked may not wait any more
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what is asked is said by who asks."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", word
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for one in list(under_way):  # nobody waits for a server that takes long
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
