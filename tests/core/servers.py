"""A small HTTP server for a test to be called by the code under test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Says nothing on the console."""

    disable_nagle_algorithm = True  # head and body are two writes: the second would wait 40 ms for the first

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """The address of a server that `handler` answers for, as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
