"""mini-swe-agent's .traj.json: {"info", "messages", "trajectory_format"}; before that a bare list of the messages.

The command in an assistant's message becomes a call of `bash`, unless it has tool calls of its own; the user's or
tool's message after it is its observation. `exit_status` and `submission` are metadata.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.commands import parted
from apps.trajectories.formats.stated import SUCCESS_KEYS, model_name, run_facts, stated_success
from apps.trajectories.formats.turns import observed
from workers.schema import Part, Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = (
    "an object with `messages` and a `trajectory_format` of mini-swe-agent, or messages with `<returncode>`"
)
READ = (
    *(f"{at}/{key}" for at in ("", "/info") for key in SUCCESS_KEYS),
    "/messages/*/type",
    "/messages/*/object",
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
    config = info.get("config")
    model = model_name(config.get("model") if isinstance(config, dict) else None, info)
    messages = document.get("messages")
    if ended := [message for message in messages if _is_exit(message)] if isinstance(messages, list) else []:
        around["exit"] = clean(ended)[0]
    return build_trajectory(
        _steps(document.get("messages"), "/messages"),
        Task(id=optional_str(around.pop("instance_id", None), pointer="/instance_id") or ""),
        pointer="/messages",
        agent="mini-swe-agent",
        agent_version=optional_str(info.get("mini_version"), pointer="/info/mini_version") or "",
        success=stated_success(around, info),
        metadata=run_facts(info.get("model_stats"), info, model=model) | around,
    )


def _is_exit(message: Any) -> bool:
    """The last message, which says how the run ended: it is in the metadata."""
    return isinstance(message, dict) and message.get("role") == "exit"


def _steps(messages: Any, pointer: str) -> tuple[Step, ...]:
    messages_read = [message for message in require_list(messages, pointer=pointer) if not _is_exit(message)]
    return tuple(_with_call(step) for step in observed(from_messages(messages_read, pointer=pointer)))


def _with_call(step: Step) -> Step:
    if step.source != "agent" or step.tool_calls:
        return step
    text, call = parted(step.text)
    if call is None:
        return step
    return replace(step, message=(Part(text=text),) if text else (), tool_calls=(call,))
