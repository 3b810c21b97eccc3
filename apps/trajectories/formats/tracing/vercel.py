"""The Vercel AI SDK: `ai.prompt.messages`, `ai.response.text`, `ai.response.toolCalls`, `ai.toolCall.*`.

`ai.generateText` and `ai.streamText` are the agent, with a `.doGenerate` or `.doStream` under it for each call of the
model and an `ai.toolCall` for each tool. Until version 3.4 answers were `ai.result.*`.
"""

from typing import Any

from apps.trajectories.formats.tracing.call_content import as_text, asked_messages, chat, decoded
from apps.trajectories.formats.tracing.span_content import (
    Message,
    SpanContent,
    SpanKind,
    token_counts,
    tool_result,
)

_METADATA = "ai.telemetry.metadata."


def content(name: str, given: dict[str, Any]) -> SpanContent | None:
    """name: of the span. None where it is not one of the Vercel AI SDK."""
    operation = str(given.get("ai.operationId") or name)
    if not operation.startswith("ai.") or not any(key.startswith("ai.") for key in given):
        return None
    kind: SpanKind = "chain"
    if operation == "ai.toolCall":
        kind = "tool"
    elif operation.endswith((".doGenerate", ".doStream")):
        kind = "model"
    elif "embed" in operation or "rerank" in operation:
        kind = "other"
    found = SpanContent(
        kind=kind,
        model=_text(given.get("ai.response.model") or given.get("ai.model.id")),
        agent=_text(given.get("ai.telemetry.functionId") or given.get("resource.name")),
        conversation=_text(given.get(f"{_METADATA}sessionId") or given.get(f"{_METADATA}threadId")),
        usage=token_counts({key[9:]: item for key, item in given.items() if key.startswith("ai.usage.")}),
    )
    if kind == "tool":
        found.arguments = decoded(given.get("ai.toolCall.args", given.get("ai.toolCall.input")))
        gave = given.get("ai.toolCall.result", given.get("ai.toolCall.output"))
        tool = _text(given.get("ai.toolCall.name"))
        found.result = tool_result(gave, name=tool, call_id=given.get("ai.toolCall.id"))
    elif kind != "other":
        found.asked, found.answer = _asked(given), _answer(given)
    return found


def _asked(given: dict[str, Any]) -> list[Message]:
    messages = decoded(given.get("ai.prompt.messages"))
    if isinstance(messages, list):
        return _plain(chat([decoded(each) for each in messages]))
    return _plain(asked_messages(decoded(given.get("ai.prompt"))))


def _answer(given: dict[str, Any]) -> list[Message]:
    def field(name: str) -> Any:
        return given.get(f"ai.response.{name}", given.get(f"ai.result.{name}"))

    calls = decoded(field("toolCalls"))
    text, made = field("text"), field("object")
    reasoning = field("reasoning")
    if not any((text, made, calls, reasoning)):
        return []
    message: Message = {
        "role": "assistant",
        "content": text if text else None if made is None else as_text(made),
    }
    if reasoning:
        message["reasoning_content"] = as_text(reasoning)
    if isinstance(calls, list) and calls:
        message["tool_calls"] = [call for call in calls if isinstance(call, dict)]
    return chat([message])


def _plain(messages: list[Message]) -> list[Message]:
    """Text as one text: the prompt of `ai.generateText` is one, the same in the call below it a list of parts."""
    return [
        message | {"content": "".join(part["text"] for part in message["content"])}
        if isinstance(message.get("content"), list)
        and message["content"]
        and all(map(_is_text, message["content"]))
        else message
        for message in messages
    ]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and set(part) == {"type", "text"} and part["type"] == "text"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
