"""What a run says while it goes on: one JSON object a line."""

import json
import math
from pathlib import Path
from typing import Any, Protocol


class Report(Protocol):
    def __call__(self, **event: Any) -> None: ...


class EventLogWriter:
    """Appends to events.jsonl; every line is flushed, so that whoever follows the file sees it at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __call__(self, **event: Any) -> None:
        numbers = {key: None if _is_nan(value) else value for key, value in event.items()}
        self._file.write(json.dumps(numbers, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
