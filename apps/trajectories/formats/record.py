"""What a file of trajectories is cut into."""

import json
from dataclasses import dataclass
from typing import Any

from workers.errors import InvalidRecord


class NotJson(InvalidRecord):
    """A line that is no JSON: of text, a file has many."""


@dataclass(frozen=True, slots=True)
class Record:
    """line: where it begins, from 1. pointer: its place in the whole document. error: why there is no `document`.
    skipped: why it is no record, such as a file of an archive that is not read. source: the file of an archive or
    folder that it is from. is_edited: whether `document` is something else than `raw` says, such as with pictures.
    is_finite: whether it is known to have no NaN, infinity, or whole number too large for a double. format: the name of
    the one it is read by, where that is known."""

    line: int
    raw: bytes = b""
    document: Any = None
    pointer: str = ""
    error: InvalidRecord | None = None
    skipped: str = ""
    source: str = ""
    is_edited: bool = False
    is_finite: bool = False
    format: str = ""


def encoded(document: Any) -> bytes:
    """A decoded document as its own bytes; lone surrogates too, which are replaced only in what is made of it."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def too_large(limit: int) -> InvalidRecord:
    return InvalidRecord(
        f"the record has more than {limit // 2**20} MB; split it, or raise TOUCHSTONE_MAX_RECORD_MB."
    )
