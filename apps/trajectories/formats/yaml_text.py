"""YAML as what JSON would have of it. Aliases, which can stand for far more than is written, are refused."""

import base64
from typing import Any

import yaml

from apps.trajectories.formats.text_kind import TextKind
from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

_DEEPEST = 64
_MOST_LOOKED = 2**20  # characters: what `text_kind` is told of a file
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FIRST = TextPattern(
    r"\A(?:---[^\n]*\n|#[^\n]*\n|[ \t]*\n)*(?:- )?[\"']?[A-Za-z_][\w .-]{0,60}[\"']?:(?:[ \t]|\r?\n)"
)


def read_yaml(text: str, what: str = "file") -> Any:
    """Raises InvalidRecord."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise InvalidRecord(f"the {what} has an alias of YAML, which is not read; write it out.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise InvalidRecord("nested too deeply to be read.")
        document = _LOADER(text).get_single_data()  # of a safe loader, as `yaml.safe_load` does
    except (yaml.YAMLError, ValueError, TypeError) as error:
        message = " ".join(str(error).split())[:200]
        raise InvalidRecord(f"not valid YAML: {message}.") from None
    return _as_json(document)


def _as_json(value: Any) -> Any:
    """As JSON has it: bytes as text, packed ones as base64, frames of an event stream as digits; dates as text."""
    if isinstance(value, bytes):
        if value[:2] == b"\x1f\x8b":
            return base64.b64encode(value).decode()
        return value.hex() if value[:3] == bytes(3) else value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _begins(head: str) -> bool:
    """Whether a whole file is YAML with an object, or a list of objects. A larger one is not looked at."""
    if len(head) >= _MOST_LOOKED or _FIRST.match(head) is None:
        return False
    try:
        document = read_yaml(head)
    except InvalidRecord:
        return False
    return (isinstance(document, dict) and len(document) > 1) or (
        isinstance(document, list) and bool(document) and all(isinstance(each, dict) for each in document)
    )


def _read(lines: list[str]) -> Any:
    document = read_yaml("".join(lines))
    is_run = isinstance(document, dict) or any("role" in each for each in document)
    return document if is_run else {"records": document}


DOCUMENT = TextKind("a YAML file", _begins, lambda line: False, _read)
