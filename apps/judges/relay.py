"""What a child process asks a language model through: it is given an address of this machine and a word for it, and
knows neither the key nor where the model is. The call goes out by the guard of outgoing calls.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from apps.core import outgoing
from apps.core.errors import DomainError
from apps.judges.models import LanguageModel
from apps.judges.services import completions_url, key_of

SECONDS = 180.0  # of one call
_MOST_ASKED = 4_000_000  # bytes
_MOST_ANSWERED = 8_000_000
_PASSED_ON = ("content-type", "retry-after", "retry-after-ms")


@contextmanager
def relay(language_model: LanguageModel) -> Iterator[tuple[str, str]]:
    """A base URL, and the key it wants. Raises DomainError where the model may not be called, or its key is lost."""
    outgoing.check_url(language_model.base_url)
    url, key, word = completions_url(language_model), key_of(language_model), secrets.token_urlsafe(32)
    with outgoing.client(seconds=SECONDS) as http:

        class Relay(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
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
                headers = {"Content-Type": "application/json"}
                if key:
                    headers["Authorization"] = f"Bearer {key}"
                try:
                    with http.stream("POST", url, content=body, headers=headers) as reply:
                        read = bytearray()
                        for part in reply.iter_bytes():
                            read += part
                            if len(read) > _MOST_ANSWERED:
                                self._refuse(HTTPStatus.BAD_REQUEST, "The answer has no end.")
                                return
                except (httpx.HTTPError, DomainError) as error:
                    self._refuse(HTTPStatus.BAD_GATEWAY, f"{type(error).__name__}: {error}")
                    return
                passed = {name: reply.headers[name] for name in _PASSED_ON if name in reply.headers}
                self._answer(reply.status_code, bytes(read), passed)

            def _refuse(self, status: HTTPStatus, message: str) -> None:
                body = json.dumps({"error": {"message": message}}).encode()
                self._answer(status, body, {"content-type": "application/json"})

            def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
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
