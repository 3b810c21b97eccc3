r"""`hh` (Anthropic's HH-RLHF): {"chosen", "rejected"}, dialogues with "\n\nHuman:" and "\n\nAssistant:".

The task is the dialogue both share; where they part before the last turn, the longest common beginning.
"""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, preference
from apps.trajectories.formats.data_rows import hh as rows


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    yield preference(places, "a", "hh")


read = answer_reader(rows, _labels, ("/chosen", "/rejected"))
