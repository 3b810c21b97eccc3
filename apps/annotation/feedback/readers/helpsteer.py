"""`helpsteer`: the five scores of a response, 0 to 4 (HelpSteer, HelpSteer2). `helpsteer-preference`: which of two
responses is better (HelpSteer2, HelpSteer3): -3 the first is much better, 0 a tie, 3 the second is much better."""

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
from apps.annotation.feedback_types.rubric import ScoreValue
from apps.trajectories.formats.data_rows import helpsteer, helpsteer_preference
from apps.trajectories.formats.data_rows.helpsteer import ATTRIBUTES
from apps.trajectories.formats.data_rows.helpsteer_preference import LABELS
from workers.errors import InvalidRecord

_SCALE = (0.0, 4.0)
_MOST = 3


def _scores(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    (trajectory,) = places
    for name in ATTRIBUTES:
        if row.get(name) is None:
            continue
        score = label_number(row, name)
        if not _SCALE[0] <= score <= _SCALE[1]:
            raise InvalidRecord(f"a score is 0 to 4, not {score:g}.", pointer=f"/{name}")
        value = ScoreValue(criterion=name, value=score, scale=_SCALE)
        yield Incoming(kind="rubric", task=trajectory.task, places=places, annotator="helpsteer", value=value)


def _preference(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    name = next((label for label in LABELS if label in row), LABELS[0])
    number = label_number(row, name)
    if not abs(number) <= _MOST or number != int(number):
        raise InvalidRecord(
            f"a preference is a whole number from -3 to 3, not {number:g}.", pointer=f"/{name}"
        )
    yield preference(places, by_sign(number), "helpsteer", strength=max(1, abs(int(number))))


read = answer_reader(helpsteer, _scores, [f"/{name}" for name in ATTRIBUTES])
read_preference = answer_reader(helpsteer_preference, _preference, [f"/{name}" for name in LABELS])
