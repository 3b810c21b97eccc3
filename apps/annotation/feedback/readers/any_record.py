"""`jsonl`: import records of any kind, as `export_feedback` writes them; each is known by its own keys."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers import outcomes, record_formats
from apps.annotation.feedback.readers.json_lines import Parse, read_json_lines
from apps.annotation.feedback_types import FEEDBACK_TYPES
from workers.errors import InvalidRecord

# The parser by a key that only one of the record formats has.
_PARSERS: dict[str, Parse] = {
    **{
        key: partial(record_formats.parse, kind)
        for kind in FEEDBACK_TYPES.values()
        for key in kind.distinguishing_keys
    },
    "success": outcomes.parse,
}


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_json_lines(stream, parse, record_formats.PLACE_FIELDS)


def parse(record: dict[str, Any]) -> Iterable[Incoming]:
    parser = next((parser for key, parser in _PARSERS.items() if key in record), None)
    if parser is None:
        raise InvalidRecord(f"the record has none of the keys {', '.join(_PARSERS)}, which tell its kind.")
    return parser(record)
