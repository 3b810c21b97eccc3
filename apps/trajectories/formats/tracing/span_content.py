"""What a span says of a run, whichever convention it was written by: a call of a model, the running of a tool, or an
agent with what it was given and gave back."""

from dataclasses import dataclass, field
from typing import Any, Literal

from apps.trajectories.formats.tracing.call_content import (
    answer_messages,
    asked_messages,
    decoded,
    response_system,
    whole_messages,
)
from workers.schema.message_parts import result_content

Message = dict[str, Any]
_INSTRUCTIONS = ("system", "developer")
SpanKind = Literal["", "model", "tool", "agent", "chain", "other"]


@dataclass(slots=True)
class SpanContent:
    """kind: `other` is what no run is made of, such as an embedding; empty where nothing says it. asked, answer: of a
    call of a model; of an agent or a chain what it was given and gave back. result: of a tool, a message with its
    `tool_call_id`. arguments: of a tool. usage: tokens by name. node: which part of a graph spoke."""

    kind: SpanKind = ""
    asked: list[Message] = field(default_factory=list)
    answer: list[Message] = field(default_factory=list)
    result: Message | None = None
    arguments: Any = None
    agent: str = ""
    version: str = ""
    model: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    cost: float | None = None
    conversation: str = ""
    node: str = ""

    def completed(self, other: "SpanContent") -> "SpanContent":
        """With what another convention says of the same span and this one does not. What was asked and what was
        answered belong together; instructions may stand apart."""
        if not self.answer and other.answer:
            is_told = any(message["role"] in _INSTRUCTIONS for message in other.asked)
            before = [message for message in self.asked if message["role"] in _INSTRUCTIONS and not is_told]
            self.asked, self.answer = [*before, *other.asked], other.answer
        if self.result is not None and other.result is not None and self.result["content"] is None:
            self.result = other.result | {
                key: value for key, value in self.result.items() if value is not None
            }
        for name in self.__slots__:
            if getattr(self, name) in ("", None, [], {}):
                setattr(self, name, getattr(other, name))
        return self


def observed(
    kind: SpanKind, given: Any, gave: Any, *, name: str = "", call_id: Any = None, **facts: Any
) -> SpanContent:
    """Of a span that has one field for what went in and one for what came out. name: of the tool, or of the agent."""
    found = SpanContent(kind=kind, **facts)
    if kind == "tool":
        found.arguments = decoded(given)
        found.result = tool_result(gave, name=name, call_id=call_id)
    elif kind == "model":
        found.asked, found.answer = asked_messages(given), answer_messages(gave)
        if not any(message["role"] in _INSTRUCTIONS for message in found.asked):
            found.asked = [*response_system(gave), *found.asked]
        found.model = found.model or _model(given) or _model(gave)
    elif kind != "other":
        messages = whole_messages(given, gave)
        if messages and messages[-1]["role"] == "assistant":
            found.asked, found.answer = messages[:-1], messages[-1:]
        else:
            found.asked = messages
        found.agent = found.agent or (name if kind == "agent" else "")
    return found


def _model(value: Any) -> str:
    value = decoded(value)
    model = value.get("model") if isinstance(value, dict) else None
    return model if isinstance(model, str) else ""


def tool_result(gave: Any, *, name: str = "", call_id: Any = None) -> Message:
    """What a tool gave back as a message, whose call is found by its id, or by the tool's name."""
    value = decoded(gave)
    value = value["output"] if isinstance(value, dict) and list(value) == ["output"] else value
    if isinstance(value, dict) and isinstance(value.get("kwargs"), dict) and value.get("lc") is not None:
        value = value["kwargs"]
    if (
        isinstance(value, dict)
        and "content" in value
        and value.get("type", "tool") in ("tool", "ToolMessage")
    ):
        call_id = call_id or value.get("tool_call_id")
        gave = value["content"]
    elif isinstance(value, str) or value is not decoded(gave):
        gave = value
    identity = None if call_id in (None, "") else str(call_id)
    message: Message = {
        "role": "tool",
        "tool_call_id": identity,
        "content": result_content(gave),
    }
    return message | ({"name": name} if name else {})


def token_counts(given: Any) -> dict[str, Any]:
    """Tokens under the names of OpenTelemetry, of an object that names them as vendors do; other counts stay."""
    found: dict[str, Any] = {}
    for key, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        found.setdefault(_TOKENS.get(key) or key, value)
    return found


_TOKENS = {
    "prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "prompt": "input_tokens",
    "completion": "output_tokens", "input": "input_tokens", "output": "output_tokens", "total": "total_tokens",
    "promptTokens": "input_tokens", "completionTokens": "output_tokens", "inputTokens": "input_tokens",
    "outputTokens": "output_tokens", "totalTokens": "total_tokens", "original_usage.prompt_tokens": "input_tokens",
}  # fmt: skip
