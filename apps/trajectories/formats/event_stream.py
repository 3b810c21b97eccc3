"""Answers of model APIs as they are sent: server-sent events, whose `data:` lines hold one event of JSON each.

WHATWG, HTML: server-sent events (an event ends with an empty line; further `data:` lines of it are further lines).
"""

from typing import Any

from apps.trajectories.formats.text_kind import TextKind
from workers.schema import parse_json

_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_LOOKED = 20  # lines
_END = "[DONE]"


def _begins(head: str) -> bool:
    """Whether all of the first lines are fields of events, and one of them has JSON."""
    lines = [line for line in head[:4000].splitlines() if line.strip()][:_LOOKED]
    if not lines or not lines[0].startswith(_FIELDS):
        return False
    has_json = False
    for line in lines:
        if not line.startswith(_FIELDS):
            break
        has_json = has_json or (line.startswith("data:") and line[5:].lstrip().startswith(("{", _END)))
    return has_json


def _read(lines: list[str]) -> Any:
    data = [_value(line) for line in lines if line.startswith("data:")]
    text = "\n".join(data)
    return None if text.strip() in ("", _END) else parse_json(text.encode())


def events_of(lines: list[str]) -> list[tuple[str, Any]]:
    """The names of events with what their data holds; of those with data. Raises InvalidRecord."""
    found: list[tuple[str, Any]] = []
    name, data = "message", []
    for line in [*lines, ""]:
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(_value(line))
        elif not line.strip() and data:
            found.append((name, parse_json("\n".join(data).encode())))
            name, data = "message", []
    return found


def _value(line: str) -> str:
    return line.rstrip("\r\n")[5:].removeprefix(" ")


def _starts(line: str) -> bool:
    """Where an event begins: recorders often leave out the empty lines between them."""
    return line.startswith(("event:", "id:")) or (
        line.startswith("data:") and _value(line).startswith(("{", _END))
    )


STREAM = TextKind("a stream of server-sent events", _begins, _starts, _read, is_told=False)
