"""`shp`: Stanford Human Preferences: `labels` is 1 where more people liked comment A, 0 where they liked B."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, label_number, preference
from apps.trajectories.formats.data_rows import shp as rows
from workers.errors import InvalidRecord


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    label = label_number(row, "labels")
    if label not in (0, 1):
        raise InvalidRecord(f"labels is 1 (A is better) or 0 (B), not {label:g}.", pointer="/labels")
    yield preference(places, "a" if label == 1 else "b", "shp")


read = answer_reader(rows, _labels, ("/labels",))
