"""Sessions of Kimi's command lines: `wire.jsonl` of Kimi Code and of kimi-cli.

Kimi Code: {"type", "time", ...}. `context.append_message` has the messages of others; what the model says and calls
comes as `context.append_loop_event`, whose `event` is a content.part, a tool.call or a tool.result, and is of the step
`stepUuid`; step.end has its usage. kimi-cli: {"timestamp", "message": {"type", "payload"}} with TurnBegin,
ContentPart, ToolCall, ToolResult and StatusUpdate. All else is kept in the metadata, as `events`.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.placed import MessageReader, Placed, object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with a `type` such as context.append_message, or a `message` such as TurnBegin, of Kimi"
Message = dict[str, Any]
_TYPES = (
    "context.",
    "turn.",
    "config.update",
    "llm.tools_snapshot",
    "tools.set_active_tools",
    "profile.bind",
)
_WIRE = ("TurnBegin", "StepBegin", "ContentPart", "ToolCall", "ToolCallPart", "ToolResult", "StatusUpdate")
_MESSAGE, _LOOP, _COMPACTED = (
    "context.append_message",
    "context.append_loop_event",
    "context.apply_compaction",
)
_PROMPTS = ("turn.prompt", "turn.steer")
_USAGE = {
    "inputOther": "input_tokens", "output": "output_tokens", "inputCacheRead": "cache_read_tokens",
    "inputCacheCreation": "cache_creation_tokens", "input_other": "input_tokens",
    "input_cache_read": "cache_read_tokens", "input_cache_creation": "cache_creation_tokens",
}  # fmt: skip
READ = (
    *(f"/*/{at}/{key}" for at in ("event/usage", "message/payload/token_usage") for key in _USAGE),
    *("/*/type", "/*/event/type", "/*/event/part/type", "/*/message/type", "/*/message/payload/type"),
    "/*/message/payload/function/arguments",
)
REPEATED = (
    *("/*/event/stepUuid", "/*/event/uuid", "/*/event/parentUuid", "/*/event/toolCallId", "/*/event/turnId"),
    "/*/systemPrompt",
)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    kind = event.get("type")
    if kind == "metadata":
        return "protocol_version" in event
    if isinstance(kind, str):
        return kind.startswith(_TYPES) and "time" in event
    message = object_at(event, "message")
    return message.get("type") in _WIRE and "payload" in message


def _is_answer(event: Any) -> bool:
    loop, wired = object_at(event, "event"), object_at(event, "message")
    return loop.get("type") in ("content.part", "tool.call") or wired.get("type") in (
        "ContentPart",
        "ToolCall",
    )


Gathered = event_log(answers=_is_answer, within=same_file)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document[:3]))
    return _is_event(document)


@storable
def read(document: Any) -> Trajectory:
    events = objects(require_list(document))
    reader = _KimiMessages(has_messages=any(event.get("type") == _MESSAGE for event in events))
    for index, event in enumerate(events):
        reader.add(f"/{index}", event)
    if not reader.messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps, facts = MessageReader(usage=lambda message: message.get("usage")).read(reader.messages)
    model = first_text(events, "model") or first_text(events, "modelAlias")
    facts |= {"model": model} if model else {}
    metadata = {
        "profile": first_text(events, "profileName"),
        "tools": next((event["tools"] for event in events if isinstance(event.get("tools"), list)), None),
        "events": reader.others,
    }
    return build_trajectory(
        steps,
        prompt_task(steps),
        agent="Kimi",
        metadata=facts | {key: value for key, value in metadata.items() if value},
    )


class _KimiMessages:
    """has_messages: whether the log has the messages of people, so that their prompts repeat them."""

    def __init__(self, *, has_messages: bool) -> None:
        self.messages: list[Placed] = []
        self.others: list[Message] = []
        self._has_messages = has_messages
        self._steps: dict[str, Message] = {}  # by `stepUuid`
        self._open: Message | None = None  # the answer that the next part of kimi-cli joins
        self._prompt = ""  # the system prompt that was added last
        self._time: Any = None  # of the event that is added

    def add(self, where: str, event: Message) -> None:
        self._time = event.get("time", event.get("timestamp"))
        kind, loop, wired = event.get("type"), object_at(event, "event"), object_at(event, "message")
        prompt = text_at(event, "systemPrompt")
        if prompt and prompt != self._prompt:
            self._prompt = prompt
            self._append(f"{where}/systemPrompt", {"role": "system", "content": prompt})
        if kind == _MESSAGE and wired:
            self._append(f"{where}/message", _context_message(wired))
        elif kind == _LOOP and self._looped(where, loop):
            pass
        elif kind == _COMPACTED and (summary := text_at(event, "contextSummary", "summary")):
            rest = {key: value for key, value in event.items() if key != "contextSummary"}
            self._append(where, {"role": "system", "content": summary, "event": rest})
        elif kind in _PROMPTS and isinstance(event.get("input"), list | str):
            if not self._has_messages:
                self._append(where, {"role": "user", "content": event["input"]})
                event = {key: value for key, value in event.items() if key != "input"}
            self.others.append(event)
        elif kind is not None or not self._wired(where, text_at(wired, "type"), object_at(wired, "payload")):
            others = {key: value for key, value in event.items() if key not in ("tools", "systemPrompt")}
            self.others.append(others)

    def _append(self, pointer: str, message: Message) -> Message:
        self.messages.append((pointer, message))
        return self._timed(message)

    def _timed(self, message: Message) -> Message:
        """When the events were logged that the message is made of."""
        if self._time is not None:
            message.setdefault("time", []).append(self._time)
        return message

    def _looped(self, where: str, event: Message) -> bool:
        """Whether it is something that the model said, called or was answered, or the end of a step."""
        kind, identity = event.get("type"), text_at(event, "stepUuid", "uuid")
        if kind == "content.part":
            _add_part(self._step(where, identity), object_at(event, "part"))
        elif kind == "tool.call":
            rest = {key: value for key, value in event.items() if key in ("description", "display")}
            call = _call(event.get("toolCallId"), event.get("name"), event.get("args"))
            self._step(where, identity).setdefault("tool_calls", []).append(call | rest)
        elif kind == "tool.result":
            self._append(where, _result(event.get("toolCallId"), event.get("result"), "output"))
        elif kind == "step.end" and identity in self._steps:
            known = ("type", "uuid", "usage", "turnId", "step")
            rest = {key: value for key, value in event.items() if key not in known}
            usage = object_at(event, "usage")
            if others := {key: value for key, value in usage.items() if not isinstance(value, int | float)}:
                rest["usage"] = others
            self._timed(self._steps[identity]).update(usage=_tokens(event.get("usage")), step=rest)
        else:
            return False
        return True

    def _step(self, where: str, identity: str) -> Message:
        if identity in self._steps:
            return self._timed(self._steps[identity])
        self._steps[identity] = self._append(where, {"role": "assistant", "content": []})
        return self._steps[identity]

    def _wired(self, where: str, kind: str, payload: Message) -> bool:
        """Of kimi-cli: whether it is a part of the conversation."""
        if kind == "TurnBegin" and isinstance(payload.get("user_input"), list | str):
            self._open = None
            self._append(where, {"role": "user", "content": payload["user_input"]})
        elif kind == "StepBegin":
            self._open = None
            return False
        elif kind == "ContentPart":
            _add_part(self._answer(where), payload)
        elif kind == "ToolCall":
            function = object_at(payload, "function")
            call = _call(payload.get("id"), function.get("name"), function.get("arguments"))
            self._answer(where).setdefault("tool_calls", []).append(call)
        elif kind == "ToolCallPart" and self._open and (part := payload.get("arguments_part")):
            function = self._open["tool_calls"][-1]["function"] if self._open.get("tool_calls") else {}
            function["arguments"] = f"{function.get('arguments') or ''}{part}"
        elif kind == "ToolResult":
            self._open = None
            value = payload.get("return_value", payload.get("result"))
            self._append(where, _result(payload.get("tool_call_id"), value, "output"))
        elif kind == "StatusUpdate" and isinstance(payload.get("token_usage"), dict) and self.messages:
            message = self.messages[-1][1]
            if message["role"] != "assistant" or "usage" in message:
                return False
            message["usage"] = _tokens(payload["token_usage"])
        else:
            return False
        return True

    def _answer(self, where: str) -> Message:
        if self._open is not None:
            return self._timed(self._open)
        self._open = self._append(where, {"role": "assistant", "content": []})
        return self._open


def _context_message(message: Message) -> Message:
    """The client writes reminders in the name of the person."""
    is_client = object_at(message, "origin").get("kind") == "injection"
    calls = [
        _call(
            call.get("id"), call.get("name", object_at(call, "function").get("name")), call.get("arguments")
        )
        for call in objects(message.get("toolCalls"))
    ]
    role = "system" if is_client and message.get("role") == "user" else message.get("role")
    rest = {key: value for key, value in message.items() if key not in ("role", "toolCalls")}
    return {"role": role} | rest | ({"tool_calls": calls} if calls else {})


def _add_part(message: Message, part: Message) -> None:
    """Parts that were streamed one after another are one text."""
    last = message["content"][-1] if message["content"] else {}
    key = text_at(part, "type")
    if key in ("text", "think") and last.get("type") == key and last.keys() == part.keys() == {"type", key}:
        last[key] = f"{last[key]}{part[key]}"
    else:
        message["content"].append(dict(part))


def _call(identity: Any, name: Any, arguments: Any) -> Message:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments or {}}}


def _result(identity: Any, value: Any, key: str) -> Message:
    inner = value if isinstance(value, dict) else {}
    rest = {name: item for name, item in inner.items() if name != key and item not in (None, "", [], {})}
    content = inner.get(key) if key in inner else value
    message = {"role": "tool", "tool_call_id": identity, "content": result_content(content)}
    return message | ({"result": rest} if rest else {})


def _tokens(usage: Any) -> Any:
    if not isinstance(usage, dict):
        return usage
    return {_USAGE.get(key, key): value for key, value in usage.items()}
