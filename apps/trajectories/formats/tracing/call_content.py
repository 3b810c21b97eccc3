"""What a model was asked and what it answered, as tracing tools record both: any vendor's request and response,
messages of LangChain or LlamaIndex, text, or JSON of these in text.

Only the envelope is found here; messages become OpenAI's in `workers.schema.message_shapes`.
"""

import json
from collections.abc import Iterable
from typing import Any

from apps.trajectories.formats.tracing.call_shapes import (
    is_block,
    is_item,
    is_message,
    is_request,
    is_response,
    is_sdk_call,
)
from apps.trajectories.formats.tracing.transcript import transcript_messages
from workers.schema.bounded import loads
from workers.schema.decode import clean
from workers.schema.message_shapes import ROLES, chat_messages

Message = dict[str, Any]
_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_ASKED = (
    *("messages", "contents", "message", "prompt", "prompts", "chat_history", "input", "inputs", "kwargs"),
    *(
        "request",
        "body",
        "request_data",
        "args",
        "question",
        "query",
        "task",
        "text",
        "content",
        "user_prompt",
    ),
)
_ANSWERED = (
    *("output", "outputs", "response", "result", "return_value", "answer", "completion", "content", "text"),
    *("generated_text", "output_text", "response_data", "body", "raw", "final_output", "final_result"),
)
_MOST_NESTED = 8


def asked_messages(value: Any, depth: int = 0) -> list[Message]:
    """The messages of a request. Empty for nothing; what is in no known shape is one message of the user, as JSON.

    Text that is JSON stays text unless it holds messages: `decoded` it first where it is known to be an envelope.
    """
    if isinstance(value, str) and is_request(inner := decoded(value)):
        value = inner
    if value in (None, "", [], {}):
        return []
    if isinstance(value, str):
        return transcript_messages(value) or [{"role": "user", "content": value}]
    if isinstance(value, list):
        return _asked_list(value, depth)
    if not isinstance(value, dict) or depth > _MOST_NESTED:
        return [{"role": "user", "content": as_text(value)}]
    if is_message(value):
        return chat([value])
    for key in _ASKED:
        if key in value and (found := asked_messages(value[key], depth + 1)):
            return [*_system_of(value, found), *found]
    return _system_of(value, []) or [{"role": "user", "content": as_text(value)}]


def answer_messages(value: Any, depth: int = 0) -> list[Message]:
    """The messages of an answer, of several choices the first. Empty for nothing."""
    if isinstance(value, str) and is_response(inner := decoded(value)):
        value = inner
    if value in (None, "", [], {}):
        return []
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    if isinstance(value, list):
        return _answer_list(value, depth)
    if not isinstance(value, dict) or depth > _MOST_NESTED:
        return [{"role": "assistant", "content": as_text(value)}]
    if (choice := _choice(value)) is not None:
        return answer_messages(choice, depth + 1)
    if is_message(value):
        return _of_agent(chat([value]))
    if isinstance(value.get("output"), list) and any(map(is_item, value["output"])):
        return _of_agent(chat([value | {"object": "response"}]))
    if isinstance(value.get("messages"), list) and value["messages"]:
        return _of_agent(_last_turn(asked_messages(value["messages"], depth + 1)))
    if value.get("tool_calls"):
        return _of_agent(chat([{"role": "assistant", "content": value.get("content")} | value]))
    for key in _ANSWERED:
        if value.get(key) not in (None, "", [], {}):
            return answer_messages(value[key], depth + 1)
    return [{"role": "assistant", "content": as_text(value)}]


def whole_messages(asked: Any, answered: Any) -> list[Message]:
    """What an agent was asked and everything it said, where its output is the conversation, as of a graph's state."""
    before, after = asked_messages(decoded(asked)), decoded(answered)
    messages = after.get("messages") if isinstance(after, dict) else after
    if isinstance(messages, list) and messages and all(map(is_message, messages)):
        said = asked_messages(messages)
        if any(message["role"] != "assistant" for message in said):
            return said
    return [*before, *answer_messages(after)]


def response_system(value: Any) -> list[Message]:
    """The instructions that a response of OpenAI repeats, which are nowhere in its request's `input`."""
    value = decoded(value)
    if isinstance(value, dict) and value.get("object") == "response":
        return _system_of({"instructions": value.get("instructions")}, [])
    return []


def chat(messages: Iterable[Any]) -> list[Message]:
    """Messages of any API as OpenAI's."""
    found = []
    for _, message in chat_messages([_with_blocks(message) for message in messages]):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict):
            message = {"role": "user", "content": as_text(message)}
        elif not isinstance(role, str) or role.lower() not in ROLES:
            message = {"role": "user", "content": as_text(message)} if role is None else _of_other(message)
        content = message.get("content")
        if not isinstance(content, str | list | None):
            message = message | {"content": as_text(content)}
        found.append(message)
    return found


def decoded(value: Any) -> Any:
    """What JSON text says, where it is an object, an array or a text; else the value itself."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            found = clean(loads(value))[0]
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, dict | list | str) else value
    return value


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _asked_list(value: list[Any], depth: int) -> list[Message]:
    if all(map(is_message, value)):
        return chat(value)
    if len(value) == 1:
        return asked_messages(value[0], depth + 1)
    if all(
        isinstance(each, list) for each in value
    ):  # a batch, of which the others have answers of their own
        return asked_messages(value[0], depth + 1)
    if all(isinstance(each, str) or is_block(each) for each in value):
        blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in value]
        return chat([{"role": "user", "content": blocks}])
    if any(map(is_message, value)):
        return [message for each in value for message in asked_messages(each, depth + 1)]
    return [{"role": "user", "content": as_text(value)}]


def _answer_list(value: list[Any], depth: int) -> list[Message]:
    if all(map(is_sdk_call, value)):
        blocks = [call | {"type": "tool-call"} for call in value]
        return chat([{"role": "assistant", "content": blocks}])
    if all(map(is_message, value)):
        messages = chat(value)
        is_one_turn = all(message["role"] == "assistant" for message in messages)
        return messages if is_one_turn else _of_agent(_last_turn(messages))
    if len(value) == 1 or all(isinstance(each, list) for each in value):
        return answer_messages(value[0], depth + 1)
    if all(map(is_block, value)):
        return _of_agent(chat([{"role": "assistant", "content": value}]))
    if isinstance(value[0], dict) and ("message" in value[0] or "generations" in value[0]):
        return answer_messages(value[0], depth + 1)
    return [{"role": "assistant", "content": as_text(value)}]


def _choice(value: dict[str, Any]) -> Any:
    """What holds the first answer of a response; None where the value is no response of several."""
    for key in ("choices", "generations", "candidates"):
        holder = value.get(key)
        while isinstance(holder, list) and holder and isinstance(holder[0], list):
            holder = holder[0]
        if isinstance(holder, list) and holder:
            first = holder[0]
            if isinstance(first, dict):
                inner = next(
                    (first[name] for name in ("message", "delta", "content") if first.get(name)), first
                )
                if (
                    isinstance(inner, dict)
                    and "role" not in inner
                    and ("content" in inner or "parts" in inner)
                ):
                    return {"role": "assistant"} | inner
                return first.get("text") if inner is first and first.get("text") else inner
            return first
    message = value.get("message")
    return message if isinstance(message, dict | str) and message and "role" not in value else None


def _last_turn(messages: list[Message]) -> list[Message]:
    """What the agent said last, with results of tools of the model between."""
    start = len(messages)
    while start and messages[start - 1]["role"] not in ("user", "system", "developer"):
        start -= 1
    turn = messages[start:]
    is_own = turn and turn[-1]["role"] == "assistant" and not any(map(_is_answered_later, turn[:-1]))
    return turn if is_own else turn[-1:] or messages[-1:]


def _is_answered_later(message: Message) -> bool:
    return message["role"] == "assistant" and bool(message.get("tool_calls"))


def _of_agent(messages: list[Message]) -> list[Message]:
    """With the role of the assistant: some logs give the answer no role."""
    if any(message["role"] == "assistant" for message in messages):
        return messages
    return [message | {"role": "assistant"} if message["role"] == "user" else message for message in messages]


def _of_other(message: Message) -> Message:
    """Of a role that no API has: a speaker of that name, on the user's side."""
    return message | {"role": "user", "name": message.get("name") or message["role"]}


def _system_of(value: dict[str, Any], found: list[Message]) -> list[Message]:
    if any(message["role"] in ("system", "developer") for message in found):
        return []
    holders = [value, *(value[key] for key in ("config", "parameters") if isinstance(value.get(key), dict))]
    for holder in holders:
        for key in _SYSTEM:
            given = decoded(holder.get(key))
            if isinstance(given, dict) and isinstance(given.get("parts"), list):
                given = given["parts"]
            if isinstance(given, str) and given:
                return [{"role": "system", "content": given}]
            if isinstance(given, list) and given and all(map(is_block, given)):
                return chat([{"role": "system", "content": given}])
    return []


def _with_blocks(message: Any) -> Any:
    """A message of LlamaIndex, whose blocks name their kind `block_type`."""
    if not isinstance(message, dict) or not isinstance(message.get("blocks"), list) or message.get("content"):
        return message
    blocks = [
        {"type": block.get("block_type", "text")}
        | {key: item for key, item in block.items() if key != "block_type"}
        if isinstance(block, dict)
        else block
        for block in message["blocks"]
    ]
    extra = message.get("additional_kwargs")
    calls = extra.get("tool_calls") if isinstance(extra, dict) else None
    known = {key: item for key, item in message.items() if key != "blocks"} | {"content": blocks}
    return known | ({"tool_calls": calls} if calls and not message.get("tool_calls") else {})
