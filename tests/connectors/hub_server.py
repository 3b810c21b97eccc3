"""A hub with one data set, as `huggingface_hub` and `datasets` ask for it."""

import hashlib
from typing import Any

from tests.connectors.contract_server import Answer, Call, Peer

REPOSITORY, COMMIT = "team/runs", "1" * 40


class HubServer(Peer):
    """files: of the repository, by their paths."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files = files
        self.card: dict[str, Any] = {}

    def answer(self, call: Call) -> Answer:
        root = f"/api/datasets/{REPOSITORY}"
        if call.path in (root, f"{root}/revision/main", f"{root}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.files]
            about = {"id": REPOSITORY, "sha": COMMIT, "private": False, "disabled": False, "tags": []}
            about |= {"downloads": 0, "likes": 0, "gated": False, "cardData": self.card, "siblings": siblings}
            return Answer(about)
        if call.path.startswith(f"{root}/revision/"):
            return Answer({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        if call.path.startswith(f"{root}/tree/{COMMIT}"):
            folder = call.path.removeprefix(f"{root}/tree/{COMMIT}").strip("/")
            return self._tree(folder, recursive=call.query.get("recursive", "").lower() == "true")
        if call.path == f"{root}/paths-info/{COMMIT}" and call.method == "POST":
            paths = call.body["paths"]
            return Answer([self._entry(name) for name in self.files if name in paths])
        prefix = f"/datasets/{REPOSITORY}/resolve/{COMMIT}/"
        if call.path.startswith(prefix) and call.path.removeprefix(prefix) in self.files:
            return self._file(call, self.files[call.path.removeprefix(prefix)])
        if call.path.startswith(prefix):
            return Answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
        return Answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    def _tree(self, folder: str, *, recursive: bool) -> Answer:
        inside = [name for name in self.files if not folder or name.startswith(f"{folder}/")]
        if folder and not inside:
            return Answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
        start = len(folder) + 1 if folder else 0
        folders = {name[: name.index("/", start)] for name in inside if "/" in name[start:]}
        shown = inside if recursive else [name for name in inside if "/" not in name[start:]]
        found = [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in sorted(folders)]
        return Answer(found + [self._entry(name) for name in shown])

    def _entry(self, name: str) -> dict[str, Any]:
        data = self.files[name]
        return {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}

    def _file(self, call: Call, data: bytes) -> Answer:
        headers = {
            "X-Repo-Commit": COMMIT,
            "ETag": f'"{hashlib.sha256(data).hexdigest()}"',
            "Accept-Ranges": "bytes",
        }
        asked = call.headers.get("range", "")
        if not asked.startswith("bytes="):
            return Answer(raw=data, headers=headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        return Answer(raw=data[start : end + 1], status=206, headers=headers)
