"""Debug logs of GitHub Copilot in VS Code (`main.jsonl`): {"ts", "dur", "sid", "type", "name", "spanId", "attrs"}.

`user_message` has `content`, `agent_response` messages of parts as JSON text, `tool_call` the `args` and the `result`
of a call that the answer before it has, by its id (the `spanId`) or its name; `tool_result` names its call.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory, from_messages, parse_json
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with a `sid`, `attrs` and a `type` such as user_message, agent_response or tool_call"
Message = dict[str, Any]
_KINDS = ("user_message", "agent_response", "tool_call", "tool_result")
READ = ("/*/type", "/*/sid", "/*/attrs/response", "/*/attrs/result", "/*/attrs/content")
REPEATED = ("/*/name", "/*/sid", "/*/spanId", "/*/attrs/args")
Gathered = event_log(
    key=lambda event: text_at(event, "sid") or None,
    answers=lambda event: isinstance(event, dict) and event.get("type") == "agent_response",
)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document[:3]))
    return _is_event(document)


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("sid"), str)
        and isinstance(event.get("attrs"), dict)
        and isinstance(event.get("type"), str)
        and "spanId" in event
    )


@storable
def read(document: Any) -> Trajectory:
    messages: list[Message] = []
    others: list[Message] = []
    calls: dict[str, str] = {}  # ids of calls, by themselves; those without a result yet, by their names
    for event in objects(require_list(document)):
        found = _messages(event, calls)
        messages += found
        if not found:
            others.append(event)
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps = from_messages(messages)
    session = next((text_at(event, "sid") for event in objects(document)), "")
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=session or None,
        agent="GitHub Copilot",
        metadata={"events": others} if others else {},
    )


def _messages(event: Message, calls: dict[str, str]) -> list[Message]:
    kind, attrs = event.get("type"), object_at(event, "attrs")
    about: Message = {key: event[key] for key in ("ts", "dur", "status") if key in event}
    if kind == "user_message":
        return [{"role": "user", "content": attrs.get("content"), "event": about}]
    if kind == "agent_response":
        response = attrs.get("response")
        given = parse_json(response) if isinstance(response, str) and response.startswith("[") else response
        messages: list[Message] = (
            [{"role": "assistant", "content": given}] if isinstance(given, str) else objects(given)
        )
        for part in (part for message in messages for part in objects(message.get("parts"))):
            if part.get("type") == "tool_call" and isinstance(part.get("id"), str):
                calls[part["id"]] = calls[f"name {part.get('name')}"] = part["id"]
        return [{"role": "assistant", "event": about} | message for message in messages]
    if kind == "tool_result":
        return [_result(attrs.get("result"), text_at(attrs, "source_call_id"), about)]
    if kind == "tool_call":
        return _call(event, attrs, calls, about)
    return []


def _call(event: Message, attrs: Message, calls: dict[str, str], about: Message) -> list[Message]:
    """The result of a call, and the call where no answer before has it."""
    span, name = text_at(event, "spanId"), text_at(event, "name")
    identity = calls.get(span) or calls.pop(f"name {name}", "")
    result = _result(attrs.get("result", attrs.get("error")), identity or span, about)
    if identity:
        return [result]
    function = {"name": name, "arguments": attrs.get("args") or {}}
    call = {"id": span, "type": "function", "function": function}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def _result(content: Any, identity: str, about: Message) -> Message:
    return {"role": "tool", "tool_call_id": identity, "content": result_content(content), "event": about}
