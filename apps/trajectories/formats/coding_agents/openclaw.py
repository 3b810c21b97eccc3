"""OpenClaw's telemetry: JSON lines of `message.in`, `agent.start`, `tool.start`, `tool.end`, `agent.end` and others.

A run is a session (`sessionKey`); events without one belong to the session before. Where an `agent.start` or
`agent.end` has the messages of its session, the last of these lists is the run, and what the events of tools say
besides is kept; else it is put together from prompts, calls and what was sent. Its trajectories ({"traceSchema":
"openclaw-trajectory", "type": "prompt.submitted" | "tool.call" | "model.completed" | ..., "data"}) are such events too.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import prompt_task, summed_metrics, with_usage
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import objects, storable
from workers.errors import InvalidRecord
from workers.schema import Trajectory, from_messages
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.message_shapes import ROLES
from workers.schema.messages import build_trajectory

SIGN = "events with a `type` such as `agent.start` or `tool.end`, and a `sessionKey`"
Message = dict[str, Any]
_KINDS = (
    "message.in",
    "message.out",
    "message.sending",
    "agent.start",
    "agent.end",
    "tool.start",
    "tool.end",
)
_OF_RUN = ("agent.start", "agent.end", "tool.start", "tool.end", "llm.usage", "diagnostic.usage")
READ = ("/*/type", "/*/toolName", "/*/prompt", "/*/agentId")
REPEATED = tuple(
    f"/*/{key}" for key in ("messages", "prompt", "content", "params", "toolName", "sessionKey", "agentId")
)


def _is_traced(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and event.get("traceSchema") == "openclaw-trajectory"
        and isinstance(event.get("type"), str)
    )


def _called(data: Message) -> Message:
    name, identity = data.get("name", data.get("toolName")), data.get("toolCallId", data.get("id"))
    return {"toolName": name, "toolCallId": identity}


def _as_telemetry(event: Message) -> Message:
    """An event of a trajectory as one of the telemetry; any other as it is."""
    data = event.get("data")
    if not _is_traced(event) or not isinstance(data, dict):
        return event
    kind = event["type"]
    if kind == "prompt.submitted":
        return event | {"type": "message.in", "content": data.get("prompt")}
    if kind == "tool.call":
        call = {
            "toolName": data.get("name", data.get("toolName")),
            "toolCallId": data.get("toolCallId", data.get("id")),
        }
        return event | call | {"type": "tool.start", "params": data.get("args", data.get("arguments"))}
    if kind == "tool.result":
        call = {
            "toolName": data.get("name", data.get("toolName")),
            "toolCallId": data.get("toolCallId", data.get("id")),
        }
        return event | call | {"type": "tool.end", "result": data.get("result", data.get("output"))}
    if kind == "model.completed":
        if _has_answer(data.get("messagesSnapshot")):
            return event | {"type": "agent.end", "messages": data["messagesSnapshot"]}
        texts = data.get("assistantTexts")
        texts = [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
        return event | ({"type": "message.out", "content": "\n".join(texts)} if texts else {})
    return event


def _session(event: Any) -> str | None:
    if _is_traced(event) and isinstance(event.get("sessionId"), str):
        return str(event["sessionId"])
    key = event.get("sessionKey") if isinstance(event, dict) else None
    return key if isinstance(key, str) and key else None


def _answers(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    event = _as_telemetry(event)
    return event.get("type") in ("tool.start", "message.out") or _has_answer(event.get("messages"))


Gathered = event_log(key=_session, answers=_answers)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(sniff, document[:2]))
    kind = document.get("type") if isinstance(document, dict) else None
    if _is_traced(document):
        return True
    if kind in _OF_RUN:
        return isinstance(document.get("sessionKey"), str)
    return kind in _KINDS and "channel" in document


@storable
def read(document: Any) -> Trajectory:
    given = objects(require_list(document))
    events = list(map(_as_telemetry, given))
    listed = next((each for each in reversed(events) if _has_answer(each.get("messages"))), None)
    messages = list(listed["messages"]) if listed is not None else _put_together(events)
    if not messages:
        raise InvalidRecord("has no messages and no calls of tools, so it holds no run; leave it out.")
    steps = tuple(with_usage(step) for step in from_messages(list(map(_with_role, messages))))
    session = next(filter(None, map(_session, events)), None)
    agent = next((each["agentId"] for each in events if isinstance(each.get("agentId"), str)), "")
    kept = [{key: value for key, value in each.items() if key != "messages"} for each in given]
    model = next((each["modelId"] for each in given if isinstance(each.get("modelId"), str)), "")
    metadata = {"model": model, "usage": summed_metrics(steps), "events": kept}
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=session,
        agent=agent or "OpenClaw",
        metadata={key: value for key, value in metadata.items() if value},
    )


def _with_role(message: Any) -> Any:
    """Notes of extensions (`custom`, `bashExecution`) are told to the model as instructions are."""
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role.lower() in ROLES:
        return message
    return message | {"role": "system", "kind": role}


def _has_answer(messages: Any) -> bool:
    return any(message.get("role") == "assistant" for message in objects(messages))


def _put_together(events: list[Message]) -> list[Message]:
    found: list[Message] = []
    prompts: set[str] = set()
    for event in events:
        kind = event.get("type")
        prompt = event.get("prompt") if kind == "agent.start" else event.get("content")
        if kind in ("agent.start", "message.in") and isinstance(prompt, str) and prompt not in prompts:
            prompts.add(prompt)
            found.append({"role": "user", "content": prompt})
        elif kind == "tool.start":
            function = {"name": str(event.get("toolName")), "arguments": event.get("params") or {}}
            call = {"id": event.get("toolCallId"), "type": "function", "function": function}
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "tool.end":
            gave = event.get("result", event.get("error"))
            about = {key: event[key] for key in ("success", "durationMs") if key in event}
            content = result_content(gave if gave is not None else about)
            result = {"role": "tool", "tool_call_id": event.get("toolCallId"), "name": event.get("toolName")}
            found.append(result | {"content": content})
        elif kind == "message.out" and isinstance(event.get("content"), str):
            found.append({"role": "assistant", "content": event["content"]})
    return found
