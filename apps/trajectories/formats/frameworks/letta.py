"""Letta: messages as its API gives them ({"message_type": "tool_call_message", ...}; a list, JSON lines, or `messages`
of an object), and agent files (.af), of which each agent's messages are a trajectory.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.placed import MessageReader, object_at, placed, storable, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "messages with a `message_type` such as tool_call_message, or an agent file with `agents` or an `agent_type`"
_AGENT = ("in_context_message_ids", "in_context_message_indices")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    messages = document.get("messages", document.get("items"))
    if isinstance(messages, list) and messages and is_message(messages[0]):
        return True
    agents = document.get("agents")
    return _is_agent(document) or (
        isinstance(agents, list) and bool(agents) and all(map(_is_agent, agents[:2]))
    )


def is_message(value: Any) -> bool:
    kind = value.get("message_type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind.endswith("_message")


def _is_agent(value: Any) -> bool:
    return isinstance(value, dict) and "messages" in value and any(key in value for key in _AGENT)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """Raises InvalidRecord."""
    document = require_object(document)
    agents = document.get("agents") if not _is_agent(document) else None
    if not isinstance(agents, list) or "messages" in document:
        yield "", document
        return
    for index, agent in enumerate(agents):
        yield f"/agents/{index}", agent


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    key = "messages" if "messages" in document else "items"
    messages = placed(document.get(key), f"/{key}")
    if not messages:
        raise InvalidRecord(
            "it is an agent of Letta without messages, so it holds no run; export it with its messages."
        )
    steps, facts = MessageReader(speaker).read(messages)
    config = object_at(document, "llm_config")
    model = facts.pop("model", "") or text_at(config, "model") or text_at(document, "model")
    around = {
        name: value
        for name, value in document.items()
        if name not in ("messages", "items", "id") and value not in (None, [], {})
    }
    totals = run_facts(document.get("usage"), model=model)
    return build_trajectory(
        steps,
        Task(id=""),
        id=text_at(document, "id") or None,
        agent=text_at(document, "name"),
        metadata=around | facts | totals,
        pointer=f"/{key}",
    )


def speaker(message: dict[str, Any]) -> str:
    """Messages between agents name who sent them."""
    return (
        text_at(message, "name")
        if message.get("message_type") in ("assistant_message", "user_message")
        else ""
    )
