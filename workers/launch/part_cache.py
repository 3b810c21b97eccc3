"""Parts of pretrained weights that a joined machine keeps between runs, by their SHA-256.

Nothing of a project is kept: neither its data nor its models, which may be deleted at the installation.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from workers.errors import RewardError


class PartCache:
    """Files of `folder`, named by their SHA-256; those used longest ago go first. most_bytes: of all together."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, digest: str, fetch: Callable[[], bytes]) -> bytes:
        """The part; by `fetch` where it is not here, or damaged. Raises RewardError for what is no SHA-256."""
        if len(digest) != 64 or not digest.isalnum():
            raise RewardError(f"{digest[:80]!r} in an index of files is no SHA-256.")
        path = self._folder / digest
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        if hashlib.sha256(content).hexdigest() == digest:
            os.utime(path)
            return content
        content = fetch()
        if hashlib.sha256(content).hexdigest() == digest:
            self._keep(path, content)
        return content

    def _keep(self, path: Path, content: bytes) -> None:
        if len(content) > self._most_bytes:
            return
        files = [each for each in self._folder.iterdir() if each != path]
        sizes = {each: each.stat() for each in files}
        left = self._most_bytes - len(content) - sum(status.st_size for status in sizes.values())
        for each in sorted(files, key=lambda each: sizes[each].st_mtime):
            if left >= 0:
                break
            each.unlink(missing_ok=True)
            left += sizes[each].st_size
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(content)
        part.replace(path)
