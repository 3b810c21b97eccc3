"""What long benchmarks have found so far, in a file: who is stopped goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class ResultCache:
    """{part: {seed: what was found}}; in `path` too, where there is one, written after every seed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path is not None and path.is_file():
            self._found = json.loads(path.read_text())

    def get(self, part: str, seed: int, find: Callable[[str, int], dict[str, Any]]) -> dict[str, Any]:
        """What is known of this part and seed; otherwise what `find` finds."""
        of_part = self._found.setdefault(part, {})
        if str(seed) not in of_part:
            of_part[str(seed)] = find(part, seed)
            if self._path is not None:
                self._path.write_text(json.dumps(self._found) + "\n")
        found: dict[str, Any] = of_part[str(seed)]
        return found
