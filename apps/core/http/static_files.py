"""Static files under names with a hash of their content, so that browsers keep them and never ask again.

Nothing is collected beforehand: the files of a checkout are read when a process starts, and again when one of them
changes. Imports of scripts and addresses in style sheets name the hashed files too; a hash covers what a file imports.
"""

import gzip
import hashlib
import posixpath
import threading
import time
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from workers.schema.patterns import PatternMatch, TextPattern

FOREVER = "public, max-age=31536000, immutable"
_SECONDS_BETWEEN_LOOKS = 1.0  # at whether a file changed
_HASH_LENGTH = 12
_MIN_COMPRESSED = 1000  # bytes; below it, compression saves less than a packet
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
_TEXT = "text/plain; charset=utf-8"
# Groups: what stands before an address, and the address.
_REFERENCES = {
    ".js": TextPattern(r"""(\b(?:from|import)\s*\(?\s*["'])(\.{1,2}/[^"']+)"""),
    ".css": TextPattern(r"""(\burl\(\s*["']?)([^"')\s]+)"""),
}
_ELSEWHERE = ("/", "#", "data:", "http:", "https:")  # how addresses begin that name no file of the folder


@dataclass(frozen=True)
class StaticFile:
    """name: its path in the folder. hashed_name: with the hash. content: with the hashed names of what it uses."""

    name: str
    content: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:_HASH_LENGTH]

    @property
    def hashed_name(self) -> str:
        stem, suffix = posixpath.splitext(self.name)
        return f"{stem}.{self.digest}{suffix}"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES.get(posixpath.splitext(self.name)[1], _TEXT)

    @cached_property
    def compressed(self) -> bytes | None:
        """Made once; None where it would not be smaller."""
        if len(self.content) < _MIN_COMPRESSED:
            return None
        made = gzip.compress(self.content, 9, mtime=0)
        return made if len(made) < len(self.content) else None

    def answer(self, requested: str, accept_encoding: str, etags: str) -> "StaticAnswer":
        """The answer to a request for `requested`, which is this file by one of its names."""
        etag = f'"{self.digest}"'
        headers = {
            "Content-Type": self.media_type,
            "Cache-Control": FOREVER if requested == self.hashed_name else "no-cache",
            "ETag": etag,
        }
        if self.compressed is not None:
            headers["Vary"] = "Accept-Encoding"
        if etag in etags:
            return StaticAnswer(304, b"", headers)
        if self.compressed is not None and _accepts_gzip(accept_encoding):
            return StaticAnswer(200, self.compressed, headers | {"Content-Encoding": "gzip"})
        return StaticAnswer(200, self.content, headers)


@dataclass(frozen=True, slots=True)
class StaticAnswer:
    status: int
    body: bytes
    headers: dict[str, str]


@dataclass
class StaticFileIndex:
    """All files of a folder, by name. Raises ValueError where a file uses one that is not there, or imports itself."""

    folder: Path
    _files: dict[str, StaticFile] = field(default_factory=dict)
    _state: Any = None
    _looked_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def files(self) -> dict[str, StaticFile]:
        if time.monotonic() - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return self._files
        with self._lock:
            paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
            stats = [(path, path.stat()) for path in paths]
            state = [(path, stat.st_mtime_ns, stat.st_size) for path, stat in stats]
            if state != self._state:
                self._files, self._state = _read_files(self.folder, paths), state
            self._looked_at = time.monotonic()
        return self._files

    def hashed_name(self, name: str) -> str:
        """Raises ValueError for a file that is not there."""
        file = self.files().get(name)
        if file is None:
            raise ValueError(f"There is no static file {name!r} in {self.folder}.")
        return file.hashed_name

    def find(self, requested: str) -> StaticFile | None:
        """By its name, or its name with a hash: that of another version too, which pages from before an update have."""
        files = self.files()
        if (file := files.get(requested)) is not None:
            return file
        plain = _without_hash(requested)
        return files.get(plain) if plain is not None else None


@cache
def static_file_index() -> StaticFileIndex:
    return StaticFileIndex(Path(settings.STATICFILES_DIRS[0]))


class HashedStaticFilesStorage(StaticFilesStorage):
    """Addresses of the `static` tag."""

    def url(self, name: str | None) -> str:
        return super().url(static_file_index().hashed_name(name or ""))


class HashedStaticFiles:
    """Serves the files below where it is mounted, by ASGI."""

    def __init__(self, index: StaticFileIndex) -> None:
        self.index = index
        index.files()  # a file that uses one that is not there stops the start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(scope)(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Method Not Allowed", 405, {"Allow": "GET, HEAD"})
        requested = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/")
        file = self.index.find(requested)
        if file is None:
            return PlainTextResponse("Not Found", 404)
        headers = Headers(scope=scope)
        answer = file.answer(requested, headers.get("Accept-Encoding", ""), headers.get("If-None-Match", ""))
        return Response(answer.body, answer.status, answer.headers)


def _without_hash(requested: str) -> str | None:
    """The plain name of a hashed one, whatever the hash; None for another name."""
    for stem, suffix in (posixpath.splitext(requested), (requested, "")):
        name, _, digest = stem.rpartition(".")
        if name and len(digest) == _HASH_LENGTH and not set(digest) - set("0123456789abcdef"):
            return name + suffix
    return None


def _accepts_gzip(accept_encoding: str) -> bool:
    for choice in accept_encoding.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _read_files(folder: Path, paths: list[Path]) -> dict[str, StaticFile]:
    raw = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    files: dict[str, StaticFile] = {}
    for name in raw:
        _add_file(name, raw, files, ())
    return files


def _add_file(
    name: str, raw: dict[str, bytes], files: dict[str, StaticFile], importers: tuple[str, ...]
) -> StaticFile:
    """What a file uses is added before it. importers: those from which it was reached."""
    if name in files:
        return files[name]
    if name in importers:
        raise ValueError(
            f"Static files import each other, so they have no hash: {' > '.join(importers)} > {name}."
        )

    def with_hash(match: PatternMatch) -> str:
        before, written = match.groups()
        if written.startswith(_ELSEWHERE):
            return str(match.group(0))
        path, mark, rest = written.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if target not in raw:
            raise ValueError(f"The static file {name} uses {written!r}, which is not there.")
        used = _add_file(target, raw, files, (*importers, name))
        address = posixpath.join(posixpath.dirname(path), posixpath.basename(used.hashed_name))
        return f"{before}{address}{mark}{rest}"

    pattern = _REFERENCES.get(posixpath.splitext(name)[1])
    content = pattern.sub(with_hash, raw[name].decode()).encode() if pattern else raw[name]
    files[name] = StaticFile(name, content)
    return files[name]
