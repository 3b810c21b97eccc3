"""Lists of items of OpenAI's Responses API, such as `to_input_list()` of the Agents SDK gives and its sessions keep:
messages, `reasoning`, `function_call`, `function_call_output`, ... An array, or JSON lines, of one run.
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import MessageReader, placed, storable
from workers.schema import Task, Trajectory
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "a list of items of the Responses API, of which one is a `function_call`, `reasoning` or the like"
_KINDS = ("reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request", "program")
_ENDINGS = ("_call", "_call_output")
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(is_item, document)) and all(map(_fits, document))
    return is_item(document)


def is_item(value: Any) -> bool:
    """Whether it is an item that no chat API has as a message."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or "data" in value:
        return False
    if kind == "message":
        content = value.get("content")
        first = content[0] if isinstance(content, list) and content else None
        return isinstance(first, dict) and first.get("type") in ("output_text", "input_text", "refusal")
    return kind in _KINDS or (kind.endswith(_ENDINGS) and ("id" in value or "call_id" in value))


def _fits(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or isinstance(value.get("type"), str))


@storable
def read(document: Any) -> Trajectory:
    steps, facts = MessageReader().read(placed(require_list(document), ""))
    return build_trajectory(steps, Task(id=""), agent=facts.get("model", ""), metadata=facts)
