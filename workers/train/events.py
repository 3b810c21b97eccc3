"""The event log of a training run: one JSON object per line."""

import json
import math
from pathlib import Path
from typing import Any, Protocol


class Report(Protocol):
    def __call__(self, **event: Any) -> None: ...


def no_report(**event: Any) -> None:
    """A Report for all but the main process."""


class EventLogWriter:
    """Appends to events.jsonl; every line is flushed for readers that follow the file."""

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
