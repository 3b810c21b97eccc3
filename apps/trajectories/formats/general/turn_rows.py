"""Conversations with a turn a record, as CSV files and JSON lines have them: {"conversation_id" | "dialogue_id" | ...,
"speaker" | "role" | ..., "text" | "utterance" | ...}. The turns of a conversation have its id, and are in their order.

Who speaks has to be known, as for `turns`.
"""

from typing import Any

from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.general.turn_lists import is_conversation, read_turns, turn_keys
from apps.trajectories.formats.placed import storable
from apps.trajectories.formats.stated import model_name
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "records with the id of a conversation, a speaker and a text, each a turn"
_IDS = (
    *(
        "conversation_id",
        "dialogue_id",
        "dialog_id",
        "conv_id",
        "convo_id",
        "session_id",
        "thread_id",
        "chat_id",
    ),
    *("conversationId", "dialogueId", "sessionId", "conversation", "dialogue", "episode_id", "call_id"),
)
_NOT_TURNS = frozenset(
    ("response", "prompt", "chosen", "rejected", "messages", "completion", "trace_id", "traceId")
)
READ = tuple(f"/*/{name}" for name in _IDS)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_row, document)) and is_conversation(document)
    return _is_row(document)


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(_id_name(value))
        and _NOT_TURNS.isdisjoint(value)
        and all(turn_keys(value, sure=True))
    )


def _id_name(row: dict[str, Any]) -> str:
    return next(
        (key for key in _IDS if isinstance(row.get(key), str | int) and row[key] not in ("", True)), ""
    )


def _key(row: Any) -> str | None:
    name = _id_name(row) if isinstance(row, dict) else ""
    return str(row[name]) if name else ALONE


Gathered = event_log(key=_key)


@storable
def read(document: Any) -> Trajectory:
    rows = [require_object(each) for each in (document if isinstance(document, list) else [document])]
    rows = [clean(row)[0] for row in rows]
    if not is_conversation(rows):
        names = sorted({str(row[key]) for row in rows if (key := turn_keys(row, sure=True)[0])})
        shown = ", ".join(map(repr, names[:6]))
        raise InvalidRecord(
            f"is a conversation of {shown}, of whom none is known as the agent; name its turns user and assistant."
        )
    name = _id_name(rows[0])
    identity = str(rows[0][name]) if name else None
    return build_trajectory(read_turns(rows), Task(id=""), id=identity, agent=model_name(*rows), metadata={})
