"""OpenInference (Arize Phoenix): `openinference.span.kind`, `llm.input_messages.N.message.*`, `llm.output_messages...`,
`tool.*`, `input.value` and `output.value`.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md. Attributes are flat, or under the
columns of Phoenix's data frames, whose messages are lists.
"""

from typing import Any

from apps.trajectories.formats.tracing.attributes import attribute_tree
from apps.trajectories.formats.tracing.call_content import answer_messages, chat, decoded
from apps.trajectories.formats.tracing.span_content import (
    Message,
    SpanContent,
    SpanKind,
    observed,
    token_counts,
)

_KINDS: dict[str, SpanKind] = {
    "LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "chain", "EMBEDDING": "other", "RERANKER": "other",
    "RETRIEVER": "other", "GUARDRAIL": "other", "EVALUATOR": "other", "PROMPT": "other", "UNKNOWN": "chain",
}  # fmt: skip
_COUNTS = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}


def content(name: str, given: dict[str, Any]) -> SpanContent | None:
    """name: of the span. None where it is not written by OpenInference."""
    kind = given.get("openinference.span.kind")
    has_messages = any(key.startswith(("llm.input_messages", "llm.output_messages")) for key in given)
    if not isinstance(kind, str) and not has_messages:
        return None
    known = _KINDS.get(str(kind).upper(), "chain") if isinstance(kind, str) else "model"
    tool = str(given.get("tool.name") or given.get("tool_call.function.name") or name)
    agent = given.get("agent.name") or given.get("graph.node.id") or name
    found = observed(
        known,
        _field(given, "input"),
        _field(given, "output"),
        name=tool if known == "tool" else str(agent),
        call_id=given.get("tool_call.id") or given.get("tool.id"),
        model=_text(given.get("llm.model_name")),
        conversation=_text(given.get("session.id")),
        node=_text(given.get("graph.node.id") or given.get("metadata.langgraph_node")),
        usage=_usage(given),
        cost=_number(given.get("llm.cost.total")),
    )
    if known == "model":
        asked, answer = _messages(given, "llm.input_messages"), _messages(given, "llm.output_messages")
        found.asked = asked or found.asked
        found.answer = [message | {"role": "assistant"} for message in answer[:1]] or found.answer
        _add_completion(given, found)
    return found


def _field(given: dict[str, Any], name: str) -> Any:
    value = given.get(f"{name}.value")
    return decoded(value) if given.get(f"{name}.mime_type") == "application/json" else value


def _add_completion(given: dict[str, Any], found: SpanContent) -> None:
    """Of models that are not chat: `llm.prompts` and `llm.choices`."""
    if not found.asked and (prompts := attribute_tree(given, "llm.prompts")):
        texts = [_first(each, ("prompt.text", "text")) for each in prompts if isinstance(prompts, list)]
        found.asked = [{"role": "user", "content": text} for text in texts if text]
    if not found.answer and (choices := attribute_tree(given, "llm.choices")):
        found.answer = answer_messages([_first(each, ("completion.text", "text")) for each in choices][:1])


def _messages(given: dict[str, Any], name: str) -> list[Message]:
    messages = attribute_tree(given, name)
    if not isinstance(messages, list):
        return []
    return chat([_message(each.get("message", each)) for each in messages if isinstance(each, dict)])


def _message(given: Any) -> Message:
    given = given if isinstance(given, dict) else {}
    known = ("contents", "tool_calls", "function_call_name", "function_call_arguments_json")
    found: Message = {key: value for key, value in given.items() if key not in known}
    found["role"] = str(found.get("role") or "user")
    contents = given.get("contents")
    if isinstance(contents, list):
        found["content"] = [
            _part(part.get("message_content", part)) for part in contents if isinstance(part, dict)
        ]
        if all(set(part) == {"type", "text"} and part["type"] == "text" for part in found["content"]):
            found["content"] = "\n".join(str(part["text"]) for part in found["content"]) or given.get(
                "content"
            )
    calls = given.get("tool_calls")
    if isinstance(calls, list) and calls:
        found["tool_calls"] = [_call(call.get("tool_call", call)) for call in calls if isinstance(call, dict)]
    elif given.get("function_call_name"):
        function = {
            "name": given["function_call_name"],
            "arguments": given.get("function_call_arguments_json") or "",
        }
        found["function_call"] = function
    if "content" not in found:
        found["content"] = None
    return found


def _part(given: Any) -> dict[str, Any]:
    """A part of a message: text, reasoning, or a picture by its address."""
    given = given if isinstance(given, dict) else {"text": str(given)}
    kind = str(given.get("type") or "text")
    if kind in ("image", "audio", "video") or (kind != "text" and kind in given):
        media = given.get(kind)
        inner = media.get(kind, media) if isinstance(media, dict) else media
        address = inner.get("url") if isinstance(inner, dict) else inner
        if isinstance(address, str):
            return {"type": kind, "url": address}
    text = given.get("text")
    return {"type": kind, "text": text} if isinstance(text, str) else {"type": "text", "text": ""} | given


def _call(given: Any) -> dict[str, Any]:
    given = given if isinstance(given, dict) else {}
    function = given.get("function")
    function = function if isinstance(function, dict) else {}
    identity = given.get("id")
    arguments = function.get("arguments")
    return {
        "id": None if identity in (None, "") else str(identity),
        "type": "function",
        "function": {
            "name": str(function.get("name") or ""),
            "arguments": "" if arguments is None else arguments,
        },
    }


def _usage(given: dict[str, Any]) -> dict[str, Any]:
    counts = {
        key.removeprefix("llm.token_count."): value
        for key, value in given.items()
        if key.startswith("llm.token_count.")
    }
    named = {_COUNTS.get(key, key): value for key, value in counts.items()}
    return token_counts(named)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _first(value: Any, keys: tuple[str, ...]) -> str:
    """A text, or that of an object whose keys may be dotted or nested."""
    if isinstance(value, str):
        return value
    for key in keys:
        inner = value
        for part in key.split("."):
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, str):
            return inner
    return ""
