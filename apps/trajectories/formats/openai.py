"""OpenAI chat messages: a bare list of them, or an object that holds them as `messages`.

{"id"?, "task"?: str | {"id", "instruction"?, "reference"?}, "agent"?: str | {"name", "version"?}, "messages": [...],
"tools"?, "reward"?, "success"?, "metadata"?}; further keys are kept as metadata.
"""

from typing import Any

from apps.trajectories.formats.fields import read_agent, read_id, read_success, read_task
from workers.schema import Trajectory, clean, from_messages
from workers.schema.decode import finite, require_object
from workers.schema.messages import build_trajectory

SIGN = "a list of messages with `role`, or an object with `messages`"
_KNOWN = ("id", "task", "agent", "messages", "reward", "success", "metadata")


def sniff(document: Any) -> bool:
    if isinstance(document, dict):
        return isinstance(document.get("messages"), list)
    return (
        isinstance(document, list)
        and bool(document)
        and all(_is_message(message) for message in document[:3])
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def read(document: Any) -> Trajectory:
    if isinstance(document, list):
        return build_trajectory(from_messages(document), read_task(None))
    document = require_object(document)
    steps = from_messages(document.get("messages"), pointer="/messages")
    return build_trajectory(steps, **common(document, known=_KNOWN), pointer="/messages")


def common(document: dict[str, Any], *, known: tuple[str, ...]) -> dict[str, Any]:
    """What surrounds the steps. Outcomes go to the outcome, the rest to metadata; no model is shown either."""
    around, _ = clean(
        {key: value for key, value in document.items() if key not in ("messages", "prompt", "response")}
    )
    name, version = read_agent(around.get("agent"))
    metadata = require_object(around.get("metadata") or {}, pointer="/metadata")
    return {
        "task": read_task(around.get("task")),
        "id": read_id(around.get("id")),
        "agent": name,
        "agent_version": version,
        "reward": finite(around.get("reward"), pointer="/reward"),
        "success": read_success(around.get("success")),
        "metadata": {key: value for key, value in around.items() if key not in known} | metadata,
    }
