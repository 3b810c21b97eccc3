"""`safe-rlhf`: PKU-SafeRLHF: which of two responses is more helpful, and which is safer."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, label_number, preference
from apps.trajectories.formats.data_rows import safe_rlhf as rows
from workers.errors import InvalidRecord

_CRITERIA = {"better_response_id": "helpfulness", "safer_response_id": "harmlessness"}


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    for name, criterion in _CRITERIA.items():
        if name not in row:
            continue
        number = label_number(row, name)
        if number not in (0, 1):
            raise InvalidRecord(f"{name} is 0 or 1, not {number:g}.", pointer=f"/{name}")
        yield preference(places, "b" if number else "a", "safe-rlhf", criterion=criterion)


read = answer_reader(rows, _labels, [f"/{name}" for name in _CRITERIA])
