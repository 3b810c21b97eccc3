"""`webgpt`: WebGPT's comparisons: the answer with the higher score is better; equal scores are a tie."""

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
from apps.trajectories.formats.data_rows import webgpt as rows


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    yield preference(places, by_sign(label_number(row, "score_1") - label_number(row, "score_0")), "webgpt")


read = answer_reader(rows, _labels, ("/score_0", "/score_1"))
