"""Chats of Grok's command line (`chat_history.jsonl`), and others whose messages have their role as `type`.

{"type": "system" | "user" | "assistant" | "reasoning" | "tool_result" | "backend_tool_call", "content"}, a message a
line. An answer has `tool_calls` ({"id", "name", "arguments"}) and its model as `model_id`; what the model thought
before it is an item of the Responses API, and so is what a tool of the server did, under `kind`.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.frameworks import langchain
from apps.trajectories.formats.placed import MessageReader, Placed, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_list
from workers.schema.message_parts import reasoning_text
from workers.schema.messages import build_trajectory

SIGN = "messages with `content` and a `type` system, user or assistant, as of Grok"
Message = dict[str, Any]
_ROLES = {"system": "system", "user": "user", "assistant": "assistant", "tool_result": "tool"}
_OTHERS = frozenset(("role", "message", "uuid", "sessionId", "session_id", "id", "data", "lc", "source"))
_HOSTED = "backend_tool_call"
READ = ("/*/type", "/*/kind/tool_type")


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("content"), str | list):
        return False
    kind = value.get("type")
    if kind == "system":
        return value.keys() == {"type", "content"}
    return kind in ("user", "assistant") and _OTHERS.isdisjoint(value)


def _is_answer(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("assistant", "ai")


Gathered = event_log(answers=_is_answer, within=same_file)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_message, document[:2]))
    return _is_message(document)


@storable
def read(document: Any) -> Trajectory:
    records = objects(require_list(document))
    if any(record.get("type") in ("human", "ai") for record in records):
        return langchain.read(document)
    messages: list[Placed] = []
    others: list[Message] = []
    thoughts: list[Message] = []  # which the next answer has
    for index, record in enumerate(records):
        kind = text_at(record, "type")
        if thoughts and kind not in ("assistant", "reasoning"):
            messages += [(f"/{index - 1}", thought) for thought in thoughts]
            thoughts = []
        if kind == "reasoning":
            thoughts.append(record)
        elif kind == _HOSTED and isinstance(record.get("kind"), dict):
            messages.append((f"/{index}", _hosted(record["kind"])))
        elif kind in _ROLES:
            messages.append((f"/{index}", _message(record, _ROLES[kind], thoughts)))
            thoughts = []
        else:
            others.append(record)
    messages += [(f"/{len(records) - 1}", thought) for thought in thoughts]
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps, facts = _READER.read(messages)
    is_grok = any(_is_grok(record) for record in records)
    return build_trajectory(
        steps,
        prompt_task(steps),
        agent="Grok" if is_grok else "",
        metadata=facts | ({"events": others} if others else {}),
    )


def _is_grok(record: Message) -> bool:
    return text_at(record, "model_id").startswith("grok") or record.get("type") == _HOSTED


def _message(record: Message, role: str, thoughts: list[Message]) -> Message:
    """The client writes messages in the name of the person, and says why."""
    role = "system" if role == "user" and text_at(record, "synthetic_reason") else role
    rest = {key: value for key, value in record.items() if key not in ("type", "tool_calls")}
    calls = [_call(call) for call in objects(record.get("tool_calls"))]
    thought = "\n".join(filter(None, map(reasoning_text, thoughts)))
    if thoughts:
        known = ("type", "summary", "content")
        items = [{key: value for key, value in each.items() if key not in known} for each in thoughts]
        rest |= {"reasoning_content": thought, "reasoning_items": items}
    return {"role": role} | rest | ({"tool_calls": calls} if calls else {})


def _call(call: Message) -> Message:
    if "function" in call:
        return call
    rest = {key: value for key, value in call.items() if key not in ("id", "type", "name", "arguments")}
    function = {"name": call.get("name"), "arguments": call.get("arguments") or {}}
    return {"id": call.get("id"), "type": "function", "function": function} | rest


def _hosted(call: Message) -> Message:
    """What a tool of the server did, as an item of the Responses API."""
    name = text_at(call, "tool_type") or "tool"
    return {"type": f"{name}_call"} | {key: value for key, value in call.items() if key != "tool_type"}


_READER = MessageReader(model=lambda message: text_at(message, "model_id", "model"))
