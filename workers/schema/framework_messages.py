"""Messages of agent frameworks as chat messages: AutoGen's, PydanticAI's, Letta's, CAMEL's, Semantic Kernel's, and
those that the Vercel AI SDK keeps.

Each kind is known by keys or types that no API has. What has no place of its own stays a key of the message.
"""

from collections.abc import Callable
from typing import Any

from workers.schema.message_parts import result_content
from workers.schema.ui_messages import is_ui_message, ui_messages

Message = dict[str, Any]
_USERS = (
    "user",
    "human",
)  # how the names of people begin in logs of AutoGen: `user`, `user_proxy`, `human_admin`
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_KERNEL = {"function_call": "function_call", "function_result": "function_result", "streaming_text": "text"}


def framework_messages(message: Any) -> list[Message] | None:
    """None for what is of none of these frameworks."""
    if not isinstance(message, dict):
        return None
    kind = message.get("type")
    if isinstance(kind, str) and kind in AUTOGEN and "content" in message and "role" not in message:
        return AUTOGEN[kind](message)
    if message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list):
        return _pydantic(message)
    if isinstance(message.get("message_type"), str) and message["message_type"].endswith("_message"):
        return _letta(message)
    if isinstance(message.get("role_at_backend"), str) and isinstance(message.get("message"), dict):
        return _camel(message)
    if isinstance(message.get("items"), list) and "role" in message and "content_type" in message:
        return [_kernel(message)]
    if is_ui_message(message):
        return ui_messages(message)
    return None


def joins(message: Any) -> bool:
    """Whether a message is a piece of a turn of the model, as the items of the Responses API are."""
    return isinstance(message, dict) and isinstance(message.get("message_type"), str)


def is_person(name: Any) -> bool:
    """Whether the name of a speaker is that of the person an agent works for."""
    return isinstance(name, str) and name.strip().lower().startswith(_USERS)


def _rest(message: Message, *known: str) -> Message:
    return {key: value for key, value in message.items() if key not in known and value not in _EMPTY}


def _autogen_text(message: Message) -> list[Message]:
    role = "user" if message["type"] == "UserMessage" or is_person(message.get("source")) else "assistant"
    content = message["content"]
    if isinstance(content, list):
        content = [_autogen_part(part) for part in content]
    elif isinstance(content, dict):
        content = result_content(content)  # of a StructuredMessage
    rest = _rest(message, "type", "content", "thought")
    thought = {"reasoning_content": message["thought"]} if isinstance(message.get("thought"), str) else {}
    return [{"role": role, "content": content} | thought | rest]


def _autogen_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("data"), str) and "type" not in part:
        return {"type": "image", "source": {"media_type": "image/png", "data": part["data"]}}
    return part


def _autogen_assistant(message: Message) -> list[Message]:
    content = message["content"]
    if not isinstance(content, list):
        return _autogen_text(message)
    return [
        {"role": "assistant", "content": None, "tool_calls": content}
        | ({"reasoning_content": message["thought"]} if isinstance(message.get("thought"), str) else {})
        | _rest(message, "type", "content", "thought")
    ]


def _autogen_results(message: Message) -> list[Message]:
    results = message["content"] if isinstance(message["content"], list) else [message["content"]]
    found: list[Message] = []
    for result in results:
        body = result if isinstance(result, dict) else {"content": result}
        about = _rest(body, "call_id", "content")
        found.append(
            {
                "role": "tool",
                "tool_call_id": body.get("call_id"),
                "content": result_content(body.get("content")),
            }
            | about
        )
    if found:
        found[0] |= {
            key: value for key, value in _rest(message, "type", "content").items() if key not in found[0]
        }
    return found


def _autogen_thought(message: Message) -> list[Message]:
    return [
        {"role": "assistant", "content": None, "reasoning_content": message["content"]}
        | _rest(message, "type", "content")
    ]


def _autogen_event(message: Message) -> list[Message]:
    """What the team did between turns, such as which speaker was selected: an observation, with its name."""
    content = message["content"]
    return [
        {"role": "tool", "content": result_content(content), "event": message["type"]}
        | _rest(message, "type", "content")
    ]


def _autogen_nothing(message: Message) -> list[Message]:
    return []


AUTOGEN: dict[str, Callable[[Message], list[Message]]] = {
    "SystemMessage": lambda message: [
        {"role": "system", "content": message["content"]} | _rest(message, "type", "content")
    ],
    "AssistantMessage": _autogen_assistant,
    "FunctionExecutionResultMessage": _autogen_results,
    "ToolCallRequestEvent": _autogen_assistant,
    "ToolCallMessage": _autogen_assistant,
    "ToolCallExecutionEvent": _autogen_results,
    "ToolCallResultMessage": _autogen_results,
    "ThoughtEvent": _autogen_thought,
    "MemoryQueryEvent": _autogen_event,
    "SelectSpeakerEvent": _autogen_event,
    "SelectorEvent": _autogen_event,
    "CodeExecutionEvent": _autogen_event,
    "UserInputRequestedEvent": _autogen_nothing,
    "ModelClientStreamingChunkEvent": _autogen_nothing,
    **dict.fromkeys(
        (
            *("UserMessage", "TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage"),
            *("ToolCallSummaryMessage", "StructuredMessage", "CodeGenerationEvent"),
        ),
        _autogen_text,
    ),
}


def _pydantic(message: Message) -> list[Message]:
    """A request has what goes to the model, a response what comes of it; each part says what it is."""
    found: list[Message] = []
    turn: Message = {"role": "assistant", "content": []}
    for part in message["parts"]:
        kind = part.get("part_kind") if isinstance(part, dict) else None
        rest = _rest(part, "part_kind", "content", "timestamp") if isinstance(part, dict) else {}
        if kind in ("tool-return", "builtin-tool-return") or (
            kind == "retry-prompt" and part.get("tool_name")
        ):
            name = part.get("tool_name")
            rest = _rest(part, "part_kind", "content", "timestamp", "tool_call_id", "tool_name")
            result = {"role": "tool", "tool_call_id": part.get("tool_call_id"), "name": name}
            if kind == "builtin-tool-return" and _is_said(turn):
                found.append(turn)
                turn = {"role": "assistant", "content": []}
            found.append(result | {"content": result_content(part.get("content"))} | rest)
        elif message["kind"] == "response":
            _add_pydantic(turn, kind, part, rest)
        else:
            role = "system" if kind in ("system-prompt", "instruction") else "user"
            content = part.get("content") if isinstance(part, dict) else part
            content = [_pydantic_part(each) for each in content] if isinstance(content, list) else content
            found.append({"role": role, "content": content} | rest)
    about = _rest(message, "kind", "parts", "timestamp", "usage", "instructions")
    if message["kind"] == "response" and (_is_said(turn) or not found):
        found.append(turn | about)
    for each in found:
        each["content"] = each["content"] if each["content"] != [] else None
    return found


def _is_said(turn: Message) -> bool:
    return len(turn) > 2 or bool(turn["content"])


def _add_pydantic(turn: Message, kind: Any, part: Any, rest: Message) -> None:
    if kind in ("tool-call", "builtin-tool-call"):
        kept = _rest(part, "part_kind", "tool_name", "args", "tool_call_id")
        call = {"id": part.get("tool_call_id"), "type": "function"} | kept
        function = {"name": part.get("tool_name"), "arguments": part.get("args")}
        turn["tool_calls"] = [*turn.get("tool_calls", ()), call | {"function": function}]
    elif kind == "thinking":
        text = part.get("content")
        before = turn.get("reasoning_content")
        if isinstance(text, str) and text:
            turn["reasoning_content"] = f"{before}\n{text}" if before else text
        if rest:
            turn["reasoning_blocks"] = [*turn.get("reasoning_blocks", ()), rest]
    elif kind in ("text", "compaction") and isinstance(part.get("content"), str):
        turn["content"].append({"type": "text", "text": part["content"]} | rest)
    else:
        content = part.get("content") if isinstance(part, dict) else part
        turn["content"].append(_pydantic_part(content))


def _pydantic_part(part: Any) -> Any:
    kind = part.get("kind") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return part
    if kind == "text-content":
        return {"type": "text", "text": part.get("content")}
    if kind == "binary":
        media = str(part.get("media_type") or "")
        name = media.partition("/")[0]
        kept = {"media_type": media, "data": part.get("data")}
        return {"type": name if name in ("image", "audio", "video") else "file", "source": kept} | _rest(
            part, "kind", "data", "media_type"
        )
    name = kind.removesuffix("-url")
    if name in ("image", "audio", "video", "document") and isinstance(part.get("url"), str):
        return {"type": name, "source": {"url": part["url"]}} | _rest(part, "kind", "url")
    return {"type": "text", "text": result_content(part), "kind": kind}


def _letta(message: Message) -> list[Message] | None:
    kind = message["message_type"].removesuffix("_message")
    rest = _rest(message, "message_type", "content", "reasoning", "tool_call", "tool_calls", "tool_return")
    rest = {"items": [{"type": message["message_type"]} | rest]} if rest else {}
    if kind in ("system", "user", "assistant"):
        content = message.get("content", message.get("assistant_message", message.get("message")))
        return [{"role": kind, "content": content} | rest]
    if kind in ("reasoning", "hidden_reasoning"):
        text = message.get("reasoning", message.get("hidden_reasoning"))
        said = {"reasoning_content": text} if isinstance(text, str) and text else {}
        return [{"role": "assistant", "content": None} | said | rest]
    if kind in ("tool_call", "function_call", "approval_request"):
        calls = message.get("tool_calls") or [message.get("tool_call", message.get("function_call"))]
        calls = calls if isinstance(calls, list) else [calls]
        made = [
            {"id": call.get("tool_call_id")} | _rest(call, "tool_call_id")
            for call in calls
            if isinstance(call, dict)
        ]
        return [{"role": "assistant", "content": None, "tool_calls": made} | rest]
    if kind in ("tool_return", "function_return"):
        content = message.get("tool_return", message.get("function_return"))
        identity = message.get("tool_call_id")
        about = _rest(
            message, "message_type", "tool_return", "function_return", "tool_call_id", "tool_returns", "name"
        )
        return [{"role": "tool", "tool_call_id": identity, "content": result_content(content)} | about]
    return [
        {
            "role": "tool",
            "content": result_content(_rest(message, "message_type")),
            "event": message["message_type"],
        }
    ]


def _camel(record: Message) -> list[Message]:
    """A record of a memory. The result of a function is of a message of its own; the call is one too."""
    message = record["message"]
    role = record["role_at_backend"]
    rest = _rest(record, "message", "role_at_backend") | _rest(
        message, "content", "role_type", "args", "result"
    )
    rest = {key: value for key, value in rest.items() if key != "role"}
    if role in ("function", "tool"):
        name = message.get("func_name")
        about = {"role": "tool", "tool_call_id": message.get("tool_call_id"), "name": name}
        content = message.get("result") if "result" in message else message.get("content")
        return [rest | about | {"content": result_content(content)}]
    if isinstance(message.get("func_name"), str) and message.get("result") is None:
        function = {"name": message["func_name"], "arguments": message.get("args")}
        call = {"id": message.get("tool_call_id"), "type": "function", "function": function}
        return [rest | {"role": "assistant", "content": message.get("content") or None, "tool_calls": [call]}]
    return [rest | {"role": role, "content": message.get("content")}]


def _kernel(message: Message) -> Message:
    """A message of Semantic Kernel: its items are blocks, with the type under another name."""
    blocks = []
    for item in message["items"]:
        kind = item.get("content_type") if isinstance(item, dict) else None
        blocks.append(
            {"type": _KERNEL.get(str(kind), str(kind))} | _rest(item, "content_type") if kind else item
        )
    role = message["role"]
    return {"role": role, "content": blocks} | _rest(message, "role", "items", "content_type", "content")
