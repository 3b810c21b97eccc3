"""`pandalm` (test set v1): {"idx", "instruction", "input", "response1", "response2", "annotator1..3"}.

The task is instruction and input, the item `idx`. annotatorN: 0 tie, 1 the first, 2 the second.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, preference
from apps.trajectories.formats.data_rows import pandalm as rows
from workers.errors import InvalidRecord
from workers.schema import Choice

_CHOICE: dict[str, Choice] = {"0": "tie", "1": "a", "2": "b"}
_NUMBERS = (1, 2, 3)


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    for number in _NUMBERS:
        given = str(row.get(f"annotator{number}"))
        if given not in _CHOICE:
            raise InvalidRecord(
                f"the annotation must be 0, 1 or 2, not {given[:60]}.", pointer=f"/annotator{number}"
            )
        found = preference(places, _CHOICE[given], f"annotator{number}")
        yield replace(found, item=str(row["idx"]) if "idx" in row else None)


read = answer_reader(
    rows,
    _labels,
    ("/idx", "/response1", "/response2", *(f"/annotator{number}" for number in _NUMBERS)),
)
