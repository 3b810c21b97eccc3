"""Prompts: files of `prompts/`, NAME.vVERSION.txt: what the model is to do, a line of three dashes, and the data.

A version that was used never changes; what is worded otherwise is a version of its own. What goes into `{{places}}` is
data: one line of JSON each, so that nothing in it can look like a part of the prompt.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "prompts"
_PLACE = re.compile(r"{{(\w+)}}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is to be asked. of: name and version of the file, and the beginning of its SHA-256."""

    of: str
    messages: tuple[dict[str, str], ...]


@cache
def _template(name: str, version: int) -> tuple[str, str, str]:
    text = (_FOLDER / f"{name}.v{version}.txt").read_text(encoding="utf-8")
    system, data = text.split("\n---\n", 1)
    return f"{name}.v{version} {hashlib.sha256(text.encode()).hexdigest()[:8]}", system.strip(), data.strip()


def prompt(name: str, version: int = 1, **values: str) -> Prompt:
    """The prompt of this name with its places filled. Raises KeyError for a place that has no value."""
    of, system, data = _template(name, version)
    filled = _PLACE.sub(lambda found: values[found[1]], data)
    return Prompt(of, ({"role": "system", "content": system}, {"role": "user", "content": filled.strip()}))


def quoted(value: Any) -> str:
    """As JSON on one line."""
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
