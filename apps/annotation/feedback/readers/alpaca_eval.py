"""`alpaca-eval`: AlpacaEval's annotations: `preference` 1 is the first output, 2 the second, 0 and 1.5 a tie; what lies
between, as its weighted annotators give it, is the nearer of the two."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import (
    Places,
    answer_reader,
    by_sign,
    label_number,
    preference,
)
from apps.trajectories.formats.data_rows import alpaca_eval as rows
from workers.errors import InvalidRecord

_TIE, _FIRST, _SECOND = 1.5, 1, 2


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    number = label_number(row, "preference")
    if number != 0 and not _FIRST <= number <= _SECOND:
        raise InvalidRecord(
            f"the preference is 0 (a tie) or a number from 1 to 2, not {number:g}.", pointer="/preference"
        )
    annotator = row.get("annotator")
    name = str(annotator) if isinstance(annotator, str | int) and annotator != "" else "alpaca-eval"
    yield preference(places, by_sign(number - _TIE) if number else "tie", name[:254])


read = answer_reader(rows, _labels, ("/preference", "/annotator"))
