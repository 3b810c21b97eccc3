"""Messages of LangChain (`dumpd`, `messages_to_dict`, `model_dump`), and states of LangGraph that hold them.

A list of messages, or JSON lines; {"messages": [...]} with the other channels of the state next to them;
{"values": {"messages"}, "next", "config"} as snapshots have it, {"channel_values": {"messages"}} as checkpoints do. Of
several snapshots of one thread the one with the most messages is read.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.placed import MessageReader, Placed, object_at, placed, storable, text_at
from apps.trajectories.formats.stated import stated_success, stated_task_id
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.messages import build_trajectory

SIGN = "messages of LangChain (`lc`, or a `type` such as human or ai), or a state of LangGraph with them"
_TYPES = frozenset(
    ("system", "human", "ai", "tool", "function", "chat", "remove", "AIMessageChunk", "developer")
)
_STATES = ("values", "channel_values", "state", "output", "outputs", "kwargs", "checkpoint")
READ = ("/*/values/success", "/*/success")


def _thread(record: Any) -> str | None:
    """The thread of a snapshot."""
    holders = (object_at(object_at(record, "config"), "configurable"), object_at(record, "metadata"), record)
    named = next((text_at(holder, "thread_id") for holder in holders if text_at(holder, "thread_id")), None)
    return named if is_state(record) else None


Gathered = event_log(key=lambda record: _thread(record) or (None if is_message(record) else ALONE))


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(is_message, document[:3]))
    return is_message(document) or is_state(document)


def is_message(value: Any) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        return _name(value).endswith(("Message", "MessageChunk"))
    if isinstance(value.get("data"), dict):
        return str(value.get("type")) in _TYPES and "content" in value["data"]
    return str(value.get("type")) in _TYPES and "content" in value


def _name(value: dict[str, Any]) -> str:
    names = value.get("id")
    return str(names[-1]) if isinstance(names, list) and names else ""


def is_state(value: Any) -> bool:
    return bool(_messages(value, "")[0])


def _messages(value: Any, pointer: str, depth: int = 0) -> tuple[list[Placed], str]:
    """The messages of a state, and the pointer of what holds them."""
    if not isinstance(value, dict) or depth > 3:
        return [], ""
    held = value.get("messages")
    if isinstance(held, list) and held and is_message(held[0]):
        return placed(held, f"{pointer}/messages"), pointer
    for key in _STATES:
        found, at = _messages(value.get(key), f"{pointer}/{key}", depth + 1)
        if found:
            return found, at
    return [], ""


@storable
def read(document: Any) -> Trajectory:
    records = document if isinstance(document, list) else [document]
    if records and is_message(records[0]):
        return _build(placed(records, ""), {})
    states = [(_messages(record, f"/{index}")[0], record) for index, record in enumerate(records)]
    messages, state = max(states, key=lambda each: len(each[0]), default=([], {}))
    if not messages:
        raise InvalidRecord("has no messages of LangChain; send the state with its `messages`.")
    return _build(messages, state)


def state_messages(value: Any, pointer: str) -> list[Placed]:
    """The messages that a state of LangGraph holds; empty for none."""
    return _messages(value, pointer)[0]


def read_messages(messages: list[Placed], identity: str) -> Trajectory:
    """A run of which only the messages are known. identity: its id; empty for none. Raises InvalidRecord."""
    return replace(_build(messages, {}), id=identity or None)


def _build(messages: list[Placed], state: dict[str, Any]) -> Trajectory:
    kept = [(pointer, message) for pointer, message in messages if _fields(message).get("type") != "remove"]
    steps, facts = MessageReader(_speaker, _usage, _model, consumed=("usage_metadata",)).read(kept)
    around = _without_messages(state)
    values = object_at(state, "values", "channel_values") or state
    return build_trajectory(
        steps,
        Task(id=stated_task_id(values)),
        agent=facts.get("model", ""),
        success=stated_success(values),
        metadata=facts | around,
    )


def _without_messages(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    rest = {key: item for key, item in value.items() if key != "messages"}
    return {key: _without_messages(item) if key in _STATES else item for key, item in rest.items()}


def _fields(message: Any) -> dict[str, Any]:
    return object_at(message, "kwargs", "data") or (message if isinstance(message, dict) else {})


def _speaker(message: dict[str, Any]) -> str:
    """The `name` of what an agent or a person says; that of a tool's result is the tool's."""
    fields = _fields(message)
    kind = f"{message.get('type')} {fields.get('type')} {_name(message)}".lower()
    return "" if "tool" in kind or "function" in kind else text_at(fields, "name")


def _usage(message: dict[str, Any]) -> Any:
    fields = _fields(message)
    about = object_at(fields, "response_metadata")
    return fields.get("usage_metadata") or about.get("token_usage") or about.get("usage")


def _model(message: dict[str, Any]) -> str:
    return text_at(object_at(_fields(message), "response_metadata"), "model_name", "model", "ls_model_name")
