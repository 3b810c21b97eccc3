"""ShareGPT's conversations: {"conversations": [{"from", "value"}], "system"?, "tools"?, "id"?}, as FastChat and
LLaMA-Factory have them, also as `conversation` or `items`, and with `role` and `content` (LMSYS-Chat, WildChat).

`function_call` and `observation` turns are calls and their results. Calls in Hermes' marks (`<tool_call>`) are read
from the text of a conversation that has results of tools.
"""

from typing import Any

from apps.trajectories.formats.data_rows.media import COLUMNS, with_media
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    decoded_messages,
    row_id,
    row_trajectory,
)
from apps.trajectories.formats.written_calls import with_written_calls
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.message_shapes import chat_messages

SIGN = "an object with `conversations` (or `conversation`) of turns with `from` and `value`, or `role` and `content`"
_NAMES = ("conversations", "conversation", "items")
_IDS = ("id", "conversation_id", "conversation_hash", "hash")
READ = (*OUTCOME_READ, *(f"/{name}" for name in (*_IDS, "system")), *(f"/{name}/*/from" for name in _NAMES))


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "chosen" in document or "rejected" in document:
        return False
    turns = next((document[name] for name in _NAMES if name in document), None)
    turns = decoded_messages(turns)
    return isinstance(turns, list) and bool(turns) and all(map(_is_turn, turns[:3]))


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and (
        ("from" in value and "value" in value) or ("role" in value and "content" in value)
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    name = next((name for name in _NAMES if name in row), _NAMES[0])
    turns = require_list(decoded_messages(row.get(name)), pointer=f"/{name}")
    from_messages(turns, pointer=f"/{name}")  # for an error that points to the turn
    messages = [message for _, message in chat_messages(turns)]
    system = optional_str(row.get("system"), pointer="/system")
    if system and not any(message.get("role") == "system" for message in messages):
        messages.insert(0, {"role": "system", "content": system})
    identity = next((key for key in _IDS if row_id(row.get(key)) is not None), "id")
    return row_trajectory(
        [],
        with_media(with_written_calls(messages), row),
        row,
        known=(name, "system", identity, *COLUMNS),
        pointer=f"/{name}",
        task=Task(id=""),
        id=row_id(row.get(identity)),
    )
