"""Pictures and clips that lie next to a document and are named in it."""

import base64
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import escape

_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
MEDIA_SUFFIXES = tuple(_MEDIA_TYPES)
_PATH_KEYS = ("screenshot_path", "image_path", "screenshot", "clip")
_MAX_DEPTH = 32
_MAX_CANDIDATES = 1000  # files of one name among which the named one is looked for


class Pictures:
    """names: of all files. read: the content of one. limit: bytes that those of one document may have together."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes], limit: int) -> None:
        self._read, self._limit = read, limit
        self._by_last: dict[str, list[PurePosixPath]] = {}
        for path in map(PurePosixPath, sorted(names)):
            if path.suffix.lower() in _MEDIA_TYPES:
                self._by_last.setdefault(path.name, []).append(path)

    def embed_images(self, document: Any, location: str) -> Any:
        """The document, which lies at `location`, with data URLs in place of names. Raises InvalidRecord."""
        if not self._by_last:
            return document
        return self._embed(document, "", PurePosixPath(location), [self._limit], 0)

    def _embed(self, value: Any, pointer: str, location: PurePosixPath, left: list[int], depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, list):
            return [
                self._embed(element, f"{pointer}/{n}", location, left, depth + 1)
                for n, element in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        out = {}
        for key, element in value.items():
            at = f"{pointer}/{escape(str(key))}"
            path = (
                self._find_file(element, location) if key in _PATH_KEYS and isinstance(element, str) else None
            )
            out[key] = (
                self._embed(element, at, location, left, depth + 1)
                if path is None
                else self._url(path, at, left)
            )
        return out

    def _url(self, path: PurePosixPath, pointer: str, left: list[int]) -> str:
        content = self._read(str(path))
        left[0] -= len(content)
        if left[0] < 0:
            raise InvalidRecord(
                f"its pictures have more than {self._limit // 2**20} MB together; send fewer, "
                "or raise TOUCHSTONE_MAX_RECORD_MB.",
                pointer=pointer,
            )
        return f"data:{_MEDIA_TYPES[path.suffix.lower()]};base64,{base64.b64encode(content).decode()}"

    def _find_file(self, name: str, location: PurePosixPath) -> PurePosixPath | None:
        """Of files of that name the one whose path ends most like it, then the one nearest to the document."""
        parts = name.replace("\\", "/").split("/")

        def likeness(path: PurePosixPath) -> tuple[int, int]:
            by_end = _common_prefix_length(reversed(parts), reversed(path.parts))
            return by_end, _common_prefix_length(location.parts, path.parts)

        candidates = self._by_last.get(parts[-1], [])
        if len(candidates) > _MAX_CANDIDATES:
            return None  # for each name that a document gives, all of them would be compared
        found = sorted(candidates, key=likeness, reverse=True)
        is_clear = len(found) == 1 or (len(found) > 1 and likeness(found[0]) > likeness(found[1]))
        return found[0] if is_clear else None


def _common_prefix_length(first: Iterable[str], second: Iterable[str]) -> int:
    count = 0
    for element, other in zip(first, second, strict=False):
        if element != other:
            break
        count += 1
    return count
