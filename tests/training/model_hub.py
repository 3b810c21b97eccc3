"""A small server that speaks the part of the Hugging Face hub's HTTP API that fetches a model."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "ab" * 20


class ModelHub:
    """repository: org/rm, with `files`. fetched: names of those that were asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if path in (f"/api/models/org/rm/revision/{name}" for name in ("main", "v2", COMMIT)):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
            info = {"_id": "1", "id": "org/rm", "modelId": "org/rm", "sha": COMMIT, "siblings": siblings}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        name = path.removeprefix(f"/org/rm/resolve/{COMMIT}/")
        if name in self.files:
            data = self.files[name]
            etag = hashlib.sha256(data).hexdigest()
            return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, data
        code = "RevisionNotFound" if path.startswith("/api/models/org/rm/") else "RepoNotFound"
        return 404, {"X-Error-Code": code}, b"{}"


@contextmanager
def running_model_hub() -> Iterator[ModelHub]:
    hub = ModelHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, data = hub.answer(urlsplit(self.path).path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                if "/resolve/" in self.path:
                    hub.fetched.append(self.path.rpartition("/")[2])
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
