"""Groups of Atropos, as `data_path_to_save_groups` writes them: {"tokens": [[id]], "masks": [[id]], "scores": [number],
"messages": [[message]] or [text], "advantages", "ref_logprobs", "overrides", "group_overrides", "images"}.

A trajectory for each sample, whose score is the reward. Token ids are left out: without `messages` (the setting
`include_messages`) a group has no text, and is refused.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    agent_text,
    row_trajectory,
)
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean
from workers.schema.chat_text import read_whole
from workers.schema.decode import finite, require_list, require_object

SIGN = "an object with `tokens`, `masks` and `scores`"
_OF_TOKENS = "numbers of single tokens; the messages are their text"
_TOKENS = ("tokens", "masks", "ref_logprobs", "advantages", "inference_logprobs", "distill_token_ids")
LEFT_OUT = {f"/{name}": _OF_TOKENS for name in _TOKENS}
READ = (*OUTCOME_READ, "/scores", "/messages")
_OF_SAMPLES = (*_TOKENS, "scores", "messages", "overrides", "images")
_NO_TEXT = "the group has token ids and no messages; run the environment with include_messages, and import that file."


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and {"tokens", "masks", "scores"} <= document.keys()


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each sample: the same keys, with what is the sample's own."""
    row = require_object(document)
    if not isinstance(row.get("scores"), list):
        yield "", document
        return
    messages = require_list(row.get("messages") or [], pointer="/messages")
    if not messages:
        raise InvalidRecord(_NO_TEXT, pointer="/messages")
    lists = {
        name: value
        for name, value in row.items()
        if name in _OF_SAMPLES and isinstance(value, list) and len(value) == len(messages)
    }
    common = {name: value for name, value in row.items() if name not in lists}
    for index in range(len(messages)):
        yield f"/messages/{index}", common | {name: values[index] for name, values in lists.items()}


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    messages, score = row.get("messages"), row.get("scores")
    if not messages:
        raise InvalidRecord(_NO_TEXT, pointer="/messages")
    if isinstance(messages, str):
        rendered = read_whole(messages)
        messages = agent_text(messages) if rendered is None else rendered.messages
    return row_trajectory(
        [],
        require_list(messages, pointer="/messages"),
        row,
        known=("messages", "scores", *_TOKENS),
        pointer="/messages",
        task=Task(id=""),
        reward=finite(score, pointer="/scores"),
    )
