"""`live_server` with threads that stay: Django's opens a thread for each connection, and that one a database session.

A new session costs some 10 ms of CPU on both sides, and a page of the browser tests makes several connections.
"""

import queue
import threading
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse

from apps.core.http.static_files import static_file_index


class PersistentThreadsServer(ThreadedWSGIServer):
    """As many threads as were ever needed at once; each keeps its database session until the server is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: queue.SimpleQueue[tuple[Any, Any] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started: list[threading.Thread] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._idle.acquire(blocking=False):
            thread = threading.Thread(target=self._serve, daemon=True)
            self._started.append(thread)
            thread.start()
        self._waiting.put((request, client_address))

    def _serve(self) -> None:
        session = connections["default"]
        # It is looked at before it is used again: a test may have ended it.
        session.settings_dict = session.settings_dict | {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
        while (taken := self._waiting.get()) is not None:
            self.process_request_thread(*taken)
            self._idle.release()
        connections.close_all()

    def _close_connections(self) -> None:
        """They stay."""

    def server_close(self) -> None:
        super().server_close()
        for _ in self._started:
            self._waiting.put(None)
        for thread in self._started:
            thread.join(timeout=5)


def serve_static(handler: StaticFilesHandler, request: HttpRequest) -> HttpResponse:
    """A static file by a name that pages have; Django's own handler finds files by their names on disk alone."""
    requested = handler.file_path(request.path)
    if (file := static_file_index().find(requested)) is None:
        raise Http404(f"There is no static file {requested!r}.")
    headers = request.headers
    answer = file.answer(requested, headers.get("Accept-Encoding", ""), headers.get("If-None-Match", ""))
    return HttpResponse(answer.body, status=answer.status, headers=answer.headers)
