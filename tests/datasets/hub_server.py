"""A small server of the hub's HTTP API, as far as `huggingface_hub` asks it to push a folder: one dataset in memory."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TOKEN = "hf_secret-token"


class Hub(ThreadingHTTPServer):
    """files: by path, bytes. requests: method and path. commits: their messages."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.commits: list[str] = []
        self.created: list[dict[str, Any]] = []
        self.private = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        path = self._note()
        if "/tree/" in path:
            self._answer([{"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                          for name, data in self.server.files.items()])  # fmt: skip
        else:
            siblings = [{"rfilename": name} for name in self.server.files]
            self._answer(
                {
                    "id": "org/set",
                    "sha": "b" * 40,
                    "siblings": siblings,
                    "private": self.server.private,
                    "tags": [],
                }
            )

    def do_POST(self) -> None:
        path = self._note()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid credentials in Authorization header"}, 401)
        elif path == "/api/repos/create":
            self.server.created.append(json.loads(body))
            self._answer({"url": f"{self.server.url}/datasets/org/set", "name": "org/set", "id": "1"})
        elif "/preupload/" in path:
            files = [
                {"path": each["path"], "uploadMode": "lfs" if each["path"].endswith(".parquet") else "regular",
                 "shouldIgnore": False} for each in json.loads(body)["files"]
            ]  # fmt: skip
            self._answer({"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            objects = [
                {"oid": each["oid"], "size": each["size"],
                 "actions": {"upload": {"href": f"{self.server.url}/upload/{each['oid']}", "header": {}}}}
                for each in json.loads(body)["objects"]
            ]  # fmt: skip
            self._answer({"transfer": "basic", "objects": objects})
        elif "/commit/" in path:
            self._commit([json.loads(line) for line in body.splitlines()])
        else:
            self._answer({})

    def do_PUT(self) -> None:
        path = self._note()
        self.server.blobs[path.rpartition("/")[2]] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({})

    def _commit(self, operations: list[dict[str, Any]]) -> None:
        for each in operations:
            value = each["value"]
            if each["key"] == "header":
                self.server.commits.append(value["summary"])
            elif each["key"] == "file":
                self.server.files[value["path"]] = base64.b64decode(value["content"])
            elif each["key"] == "lfsFile":
                self.server.files[value["path"]] = self.server.blobs[value["oid"]]
            elif each["key"] == "deletedFile":
                del self.server.files[value["path"]]
        oid = f"{len(self.server.commits):040x}"
        url = f"{self.server.url}/datasets/org/set/commit/{oid}"
        self._answer({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})

    def _note(self) -> str:
        path = urlsplit(self.path).path
        self.server.requests.append((self.command, path))
        return path

    def _answer(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def running_hub() -> Iterator[Hub]:
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
