"""Samples of TapeAgents for training: {"text", "n_predicted", "reward", "logprobs", "group_id"?}: of a text, the last
`n_predicted` characters are the agent's."""

from typing import Any

from apps.trajectories.formats.data_rows.rendered import RenderedSample, read_rendered
from apps.trajectories.formats.data_rows.row_trajectories import (
    agent_text,
    required_text,
    row_trajectory,
    user_text,
)
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with a `text` and `n_predicted`, the number of its characters that the agent wrote"
READ = ("/text", "/n_predicted", "/reward")
_KNOWN = ("text", "n_predicted")


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("text"), str) and "n_predicted" in document


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    text, count = required_text(row, "text"), row.get("n_predicted")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= len(text):
        raise InvalidRecord(
            f"n_predicted is a whole number from 1 to {len(text)}, the length of the text.",
            pointer="/n_predicted",
        )
    asked, answered = text[:-count], text[-count:]
    rendered = read_rendered(asked, answered) or RenderedSample(user_text(asked), agent_text(answered), {})
    return row_trajectory(
        rendered.prompt, rendered.answer, row, known=_KNOWN, pointer="/text", metadata=rendered.about
    )
