"""Pictures and clips that lie next to a document and are named in it."""

import base64
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import escape

_KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
_NAMED_BY = ("screenshot_path", "image_path", "screenshot", "clip")
_DEEPEST = 32
_MOST_ALIKE = 1000  # files of one name among which the meant one is looked for


class Pictures:
    """names: of all files. read: the content of one. limit: bytes that those of one document may have together."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes], limit: int) -> None:
        self._read, self._limit = read, limit
        self._by_last: dict[str, list[PurePosixPath]] = {}
        for path in map(PurePosixPath, sorted(names)):
            if path.suffix.lower() in _KINDS:
                self._by_last.setdefault(path.name, []).append(path)

    def put_into(self, document: Any, beside: str) -> Any:
        """The document, which lies at `next to`, with data URLs in place of names. Raises InvalidRecord."""
        if not self._by_last:
            return document
        return self._put(document, "", PurePosixPath(beside), [self._limit], 0)

    def _put(self, value: Any, pointer: str, beside: PurePosixPath, left: list[int], depth: int) -> Any:
        if depth > _DEEPEST:
            return value
        if isinstance(value, list):
            return [
                self._put(element, f"{pointer}/{n}", beside, left, depth + 1)
                for n, element in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        out = {}
        for key, element in value.items():
            at = f"{pointer}/{escape(str(key))}"
            path = self._meant(element, beside) if key in _NAMED_BY and isinstance(element, str) else None
            out[key] = (
                self._put(element, at, beside, left, depth + 1) if path is None else self._url(path, at, left)
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
        return f"data:{_KINDS[path.suffix.lower()]};base64,{base64.b64encode(content).decode()}"

    def _meant(self, name: str, beside: PurePosixPath) -> PurePosixPath | None:
        """Of files of that name the one whose path ends most like it, then the one nearest to the document."""
        parts = name.replace("\\", "/").split("/")

        def likeness(path: PurePosixPath) -> tuple[int, int]:
            return _alike(reversed(parts), reversed(path.parts)), _alike(beside.parts, path.parts)

        meant = self._by_last.get(parts[-1], [])
        if len(meant) > _MOST_ALIKE:
            return None  # for each name that a document gives, all of them would be compared
        found = sorted(meant, key=likeness, reverse=True)
        is_clear = len(found) == 1 or (len(found) > 1 and likeness(found[0]) > likeness(found[1]))
        return found[0] if is_clear else None


def _alike(first: Iterable[str], second: Iterable[str]) -> int:
    """How many parts are the same from the beginning."""
    count = 0
    for element, other in zip(first, second, strict=False):
        if element != other:
            break
        count += 1
    return count
