"""mini-swe-agent's .traj.json: {"info", "messages", "trajectory_format"}; before that a bare list of the messages.

The command in an assistant's message becomes a call of `bash`, unless it has tool calls of its own; the user's or
tool's message after it is its observation. `exit_status` and `submission` are metadata.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.commands import parted
from apps.trajectories.formats.turns import observed
from workers.schema import Part, Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = (
    "an object with `messages` and a `trajectory_format` of mini-swe-agent, or messages with `<returncode>`"
)
_OBSERVED = "<returncode>"


def sniff(document: Any) -> bool:
    if isinstance(document, dict):
        return str(document.get("trajectory_format", "")).startswith("mini-swe-agent")
    if not isinstance(document, list) or len(document) < 4:
        return False
    third = document[3]
    return isinstance(third, dict) and str(third.get("content", "")).startswith(_OBSERVED)


def read(document: Any) -> Trajectory:
    if isinstance(document, list):
        return build_trajectory(_steps(document, ""), Task(id=""), agent="mini-swe-agent")
    document = require_object(document)
    around, _ = clean({key: value for key, value in document.items() if key != "messages"})
    info = require_object(around.get("info") or {}, pointer="/info")
    return build_trajectory(
        _steps(document.get("messages"), "/messages"),
        Task(id=optional_str(around.pop("instance_id", None), pointer="/instance_id") or ""),
        pointer="/messages",
        agent="mini-swe-agent",
        agent_version=optional_str(info.get("mini_version"), pointer="/info/mini_version") or "",
        metadata=around,
    )


def _steps(messages: Any, pointer: str) -> tuple[Step, ...]:
    given = [_as_chat(message) for message in require_list(messages, pointer=pointer)]
    messages_read = [
        message for message in given if not (isinstance(message, dict) and message.get("role") == "exit")
    ]
    return tuple(_with_call(step) for step in observed(from_messages(messages_read, pointer=pointer)))


def _with_call(step: Step) -> Step:
    if step.source != "agent" or step.tool_calls:
        return step
    text, call = parted(step.text)
    if call is None:
        return step
    return replace(step, message=(Part(text=text),) if text else (), tool_calls=(call,))


def _as_chat(message: Any) -> Any:
    """A message of the Responses API as a chat message; any other as it is."""
    if not isinstance(message, dict):
        return message
    if message.get("type") == "function_call_output":
        rest = {key: value for key, value in message.items() if key not in ("type", "call_id", "output")}
        tied = {"role": "tool", "tool_call_id": message.get("call_id")}
        return rest | tied | {"content": message.get("output")}
    output = message.get("output")
    if message.get("object") != "response" or not isinstance(output, list):
        return message
    items = [value for value in output if isinstance(value, dict)]
    calls = [
        {
            "id": item.get("call_id"),
            "type": "function",
            "function": {"name": item.get("name"), "arguments": item.get("arguments", "")},
        }
        for item in items
        if item.get("type") == "function_call"
    ]
    content = _texts(item for item in items if item.get("type") == "message")
    thought = _texts({"content": item.get("summary")} for item in items if item.get("type") == "reasoning")
    messages_read = {"role": "assistant", "content": content or None, "reasoning_content": thought or None}
    return messages_read | ({"tool_calls": calls} if calls else {})


def _texts(items: Any) -> str:
    parts = (part for item in items for part in item.get("content") or () if isinstance(part, dict))
    return "\n".join(text for part in parts if isinstance(text := part.get("text"), str))
