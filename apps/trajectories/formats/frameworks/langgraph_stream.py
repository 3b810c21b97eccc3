"""Streams of LangGraph's server: server-sent events such as `messages/partial`, `values` and `debug`, one run a file.

Read are the largest state that an event holds, and after it the messages that only `messages/...` events have, each as
it was last sent: pieces are sent again and again, each time with more of their text.
"""

from typing import Any

from apps.trajectories.formats.event_stream import events_of
from apps.trajectories.formats.frameworks.langchain import is_message, read_messages, state_messages
from apps.trajectories.formats.placed import Placed, object_at, objects, storable, text_at
from apps.trajectories.formats.text_kind import TextKind
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_list, require_object

SIGN = "server-sent events of LangGraph, the first of them `event: metadata` with a `run_id`"
_FIELD = "langgraph_stream"  # of the document that a file becomes: its events, with their names
_STATES = ("values", "debug")
_SENT_AGAIN = "an event of the stream, of which the last state and the last form of each message are read"
LEFT_OUT = {f"/{_FIELD}/*/event": _SENT_AGAIN, f"/{_FIELD}/*/data": _SENT_AGAIN}


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get(_FIELD), list)


@storable
def read(document: Any) -> Trajectory:
    events = objects(require_list(require_object(document).get(_FIELD), pointer=f"/{_FIELD}"))
    states: list[list[Placed]] = [[]]
    sent: dict[str, Placed] = {}
    for index, event in enumerate(events):
        name, data, at = text_at(event, "event"), event.get("data"), f"/{_FIELD}/{index}/data"
        if name in _STATES:
            held = object_at(data, "payload") if name == "debug" else data
            states.append(state_messages(held, f"{at}/payload" if name == "debug" else at))
        elif name.startswith("messages/") and isinstance(data, list):
            for place, message in enumerate(data):
                if is_message(message):
                    sent[str(message.get("id"))] = (f"{at}/{place}", message)
    found = max(states, key=len)
    known = {str(message.get("id")) for _, message in found if isinstance(message, dict)}
    found = [*found, *(message for identity, message in sent.items() if identity not in known)]
    if not found:
        raise InvalidRecord("no event of the stream holds a message.", pointer=f"/{_FIELD}")
    run = next(
        (text_at(event.get("data"), "run_id") for event in events if event.get("event") == "metadata"), ""
    )
    return read_messages(found, run)


def _read_text(lines: list[str]) -> Any:
    return {_FIELD: [{"event": name, "data": data} for name, data in events_of(lines)]}


STREAM = TextKind(
    "a stream of LangGraph's server",
    lambda head: head.startswith("event: metadata") and '"run_id"' in head[:500],
    lambda line: line.startswith("event: metadata"),
    _read_text,
)
