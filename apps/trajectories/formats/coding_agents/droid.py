"""What Factory's `droid exec --output-format stream-json` prints: an event a line.

{"type": "system" | "message" | "tool_call" | "tool_result" | "completion" | "error", "session_id" | "sessionId"}. A
message has `role` and `text`, a call `toolName` and `parameters`, its result `value` and `isError`; the completion has
the last answer again, as `finalText`, and the usage. Where the first event is as Claude Code's, its reader gives the
run to this one. Droid's own sessions are as those of pi.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import Placed, objects, steps_of, storable, text_at
from apps.trajectories.formats.stated import call_metrics, run_facts
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with a `session_id` and a `type` message, tool_call or completion of Droid"
Message = dict[str, Any]
_SESSION = ("session_id", "sessionId")
_OF_EVENT = ("type", *_SESSION, "cwd", "model")
READ = ("/*/type", "/*/toolCallId", "/*/id", "/*/parameters", "/*/finalText", "/*/value", "/*/value/*")
REPEATED = tuple(f"/*/{key}" for key in _SESSION)


def is_of_droid(event: Any) -> bool:
    """Whether it is an event that only Droid prints."""
    if not isinstance(event, dict) or not text_at(event, *_SESSION):
        return False
    kind = event.get("type")
    if kind == "message":
        return isinstance(event.get("role"), str) and isinstance(event.get("text"), str)
    return (kind == "completion" and "finalText" in event) or (kind == "tool_call" and "toolName" in event)


def is_answer(event: Any) -> bool:
    return is_of_droid(event) and (event["type"] != "message" or event["role"] == "assistant")


Gathered = event_log(key=lambda event: text_at(event, *_SESSION) or None, answers=is_answer)


def sniff(document: Any) -> bool:
    first = document[0] if isinstance(document, list) and document else document
    is_start = isinstance(first, dict) and first.get("type") == "system" and "subtype" not in first
    return is_of_droid(first) or (is_start and {"model", "cwd", "session_id"} <= first.keys())


@storable
def read(document: Any) -> Trajectory:
    events = objects(require_list(document))
    messages: list[Placed] = []
    others: list[Message] = []
    end: Message = next((event for event in reversed(events) if event.get("type") == "completion"), {})
    for index, event in enumerate(events):
        message = _message(event)
        if message is None:
            others.append(event)
        elif event is not end or not _is_said(messages, message["content"]):
            messages.append((f"/{index}", message))
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps = steps_of(messages)
    usage = end.get("usage")
    if isinstance(usage, dict) and steps[-1].source == "agent":
        steps = (*steps[:-1], replace(steps[-1], metrics=call_metrics(usage)))
    others += [{key: value for key, value in end.items() if key != "finalText"}] if end else []
    session = first_text(events, *_SESSION)
    metadata = {"session": session, "cwd": first_text(events, "cwd"), "events": others}
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=session or None,
        agent="Droid",
        metadata=run_facts(usage, model=first_text(events, "model"))
        | {key: value for key, value in metadata.items() if value},
    )


def _message(event: Message) -> Message | None:
    """None of an event that is not of the conversation."""
    kind = event.get("type")
    known = (*_OF_EVENT, "role", "text", "toolName", "parameters", "value", "finalText", "usage")
    about = {key: value for key, value in event.items() if key not in known}
    if kind == "message":
        return {"role": event.get("role"), "content": event.get("text"), "event": about}
    if kind == "completion":
        return {"role": "assistant", "content": event.get("finalText"), "event": about}
    identity = event.get("toolCallId", event.get("id"))
    if kind == "tool_call":
        function = {"name": event.get("toolName"), "arguments": event.get("parameters") or {}}
        call = {"id": identity, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call], "event": about}
    if kind == "tool_result":
        content = result_content(event.get("value", event.get("error")))
        return {"role": "tool", "tool_call_id": identity, "content": content, "event": about}
    return None


def _is_said(messages: list[Placed], text: Any) -> bool:
    """Whether a text is the last answer, or none."""
    said = [message["content"] for _, message in messages if message["role"] == "assistant"]
    return not text or (bool(said) and said[-1] == text)
