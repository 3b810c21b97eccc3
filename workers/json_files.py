"""JSON files that are complete or absent."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Writes `value` to `path`: completely, or not at all if it fails."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)
