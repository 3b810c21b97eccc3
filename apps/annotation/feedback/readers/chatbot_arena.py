"""`chatbot-arena`: battles of Chatbot Arena and MT-Bench, with the person or model that judged where one is named."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, preference
from apps.trajectories.formats.data_rows import chatbot_arena as rows
from workers.errors import InvalidRecord
from workers.schema import Choice

_CHOICES: dict[str, Choice] = {
    "model_a": "a",
    "model_b": "b",
    "tie": "tie",
    "tie (bothbad)": "both_bad",
    "bothbad": "both_bad",
    "both_bad": "both_bad",
}


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    winner = str(row.get("winner")).strip().lower()
    if winner not in _CHOICES:
        raise InvalidRecord(
            f"the winner is one of {', '.join(_CHOICES)}, not {winner[:60]!r}.", pointer="/winner"
        )
    judge = row.get("judge")
    name = judge[:254] if isinstance(judge, str) and judge else "chatbot-arena"
    yield preference(places, _CHOICES[winner], name)


read = answer_reader(rows, _labels, ("/winner", "/judge"))
