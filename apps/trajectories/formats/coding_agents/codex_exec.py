"""What `codex exec --json` prints: {"type": "thread.started"}, turns with their usage, and items as they are completed.

Items are {"id", "type": "agent_message" | "reasoning" | "command_execution" | "file_change" | "mcp_tool_call" |
"collab_tool_call" | "web_search" | "todo_list" | "error", ...}. An action is a call and its result at once. The prompt
is not printed. A turn that failed is a failure; one that ended says nothing of success.
"""

import json
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task, summed_metrics
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.stated import call_metrics
from workers.schema import Step, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with a `type` such as `thread.started` or `item.completed`"
_KINDS = ("thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed")
_OF_ITEM = ("item.started", "item.updated", "item.completed")
_RESULTS = ("aggregated_output", "result", "error", "status", "exit_code", "agents_states")
_NAMES = {"command_execution": "shell", "file_change": "apply_patch", "todo_list": "update_plan"}
READ = ("/*/type", "/*/item/type", "/*/item/server", "/*/item/tool", "/*/item/status", "/*/usage")
# An item is printed when it begins, when it changes and when it ends.
REPEATED = tuple(
    f"/*/item/{key}" for key in ("id", "command", "aggregated_output", "arguments", "items", "changes")
)
Gathered = event_log(
    key=lambda event: event.get("thread_id") if event.get("type") == "thread.started" else None,
    within=same_file,
)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(sniff, document[:2])) and all(isinstance(each, dict) for each in document[:2])
    kind = document.get("type") if isinstance(document, dict) else None
    return kind in _KINDS or (kind == "item.updated" and "item" in document)


def read(document: Any) -> Trajectory:
    events, _ = clean(require_list(document))
    messages, places, others = [], [], []
    last = _last_places(events)
    for index, event in enumerate(events):
        item = event.get("item") if isinstance(event, dict) and event.get("type") in _OF_ITEM else None
        found = _messages(item) if isinstance(item, dict) and last.get(_key(item)) == index else None
        if found is None:
            others += [] if _is_earlier(event, events, last) else [event]
            continue
        messages += found
        places += [index] * len(found)
    steps = [
        replace(step, extra=step.extra | {"source_index": places[step.extra["source_index"]]})
        for step in from_messages(messages)
    ]
    steps = _with_turn_usage(steps, events)
    thread = first_text(events, "thread_id")
    failed = any(isinstance(event, dict) and event.get("type") == "turn.failed" for event in events)
    metadata = {"usage": summed_metrics(steps), "session": thread, "events": others}
    return build_trajectory(
        tuple(steps),
        prompt_task(steps),
        id=thread or None,
        agent="Codex",
        success=False if failed else None,
        metadata={key: value for key, value in metadata.items() if value},
    )


def _key(item: dict[str, Any]) -> str:
    return str(item.get("id", id(item)))


def _last_places(events: list[Any]) -> dict[str, int]:
    """Where the last event of each item is, which has all of it."""
    return {
        _key(item): index
        for index, event in enumerate(events)
        if isinstance(event, dict)
        and event.get("type") in _OF_ITEM
        and isinstance(item := event.get("item"), dict)
    }


def _is_earlier(event: Any, events: list[Any], last: dict[str, int]) -> bool:
    """Whether an event is of an item that a later one has all of."""
    item = event.get("item") if isinstance(event, dict) else None
    if not isinstance(item, dict) or event.get("type") not in _OF_ITEM:
        return False
    after = events[last[_key(item)]]
    return after is not event and after["item"].get("type") == item.get("type")


def _messages(item: dict[str, Any]) -> list[dict[str, Any]] | None:
    kind = str(item.get("type", item.get("item_type")))
    text = item.get("text")
    rest = {key: value for key, value in item.items() if key not in ("type", "item_type", "text")}
    if kind in ("agent_message", "assistant_message", "plan") and isinstance(text, str):
        return [rest | {"type": "message", "role": "assistant", "content": text}]
    if kind == "reasoning" and isinstance(text, str):
        return [
            {"type": "reasoning", "id": item.get("id"), "summary": [{"type": "summary_text", "text": text}]}
        ]
    if kind == "error" and isinstance(item.get("message"), str):
        return [{"role": "system", "content": item["message"]}]
    if kind == "None":
        return None
    body = {key: value for key, value in item.items() if key not in ("id", "type", "item_type")}
    arguments = {key: value for key, value in body.items() if key not in _RESULTS}
    name = _NAMES.get(kind, kind)
    if kind in ("mcp_tool_call", "collab_tool_call"):
        name = ".".join(str(arguments.pop(key)) for key in ("server", "tool") if key in arguments)
        arguments = arguments.get("arguments", arguments) if kind == "mcp_tool_call" else arguments
    call = {"type": "function_call", "call_id": _key(item), "name": name, "arguments": _text(arguments)}
    result = {key: body[key] for key in _RESULTS if body.get(key) not in (None, "")}
    if result in ({}, {"status": "in_progress"}):
        return [call]
    output = {"type": "function_call_output", "call_id": _key(item), "output": _outcome(result)}
    return [call, output | {key: result[key] for key in ("status", "exit_code") if key in result}]


def _outcome(result: dict[str, Any]) -> Any:
    """What an action gave: its output; without one, what became of it."""
    content = result.get("aggregated_output", result.get("result"))
    if isinstance(content, dict) and isinstance(content.get("content"), list):
        content = content["content"]
    return result_content(content if content is not None else result)


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _with_turn_usage(steps: list[Step], events: list[Any]) -> list[Step]:
    """The last step of each turn with the tokens of the turn."""
    found = list(steps)
    for index, event in enumerate(events):
        usage = event.get("usage") if isinstance(event, dict) else None
        before = [
            at
            for at, step in enumerate(found)
            if step.source == "agent" and step.extra["source_index"] < index
        ]
        if isinstance(usage, dict) and before and not found[before[-1]].metrics:
            found[before[-1]] = replace(found[before[-1]], metrics=call_metrics(usage))
    return found
