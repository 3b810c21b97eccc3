"""NeMo-Gym's verify: {"responses_create_params", "response"} -> the same, with `reward` and `reward_components`.

Both sides are of OpenAI's Responses API: the prompt is `input` (and `instructions`), the response its `output`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, parse_tags, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, filled, pair_item, text
from workers.errors import InvalidRecord
from workers.schema.decode import require_list, require_object

Json = dict[str, Any]
_TEXTS = ("input_text", "output_text", "text", "summary_text", "refusal")


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    document = read_document(body)
    at = "/responses_create_params"
    asked = require_object(document.get("responses_create_params"), pointer=at)
    answered = require_object(document.get("response"), pointer="/response")
    prompt = _prompt(asked, at)
    response = list(_messages(filled(answered.get("output"), "/response/output"), "/response/output"))
    item = pair_item(prompt, response, "")
    return ScoreRequest(
        (item,), steps=False, tags=parse_tags(document, headers), pointer=None, context=document
    )


def reply(response: ScoreResponse) -> Json:
    """reward_components: what each component adds, and what the transforms took away; their sum is the reward."""
    (score,) = response.scores
    components = dict(score.components)
    rest = score.reward - sum(components.values())
    if rest:
        components["transforms"] = rest
    return response.request.context | {"reward": score.reward, "reward_components": components}


def _prompt(asked: Json, at: str) -> list[Json]:
    content = asked.get("input")
    messages = (
        [{"role": "user", "content": content}]
        if isinstance(content, str)
        else list(_messages(require_list(content, pointer=f"{at}/input"), f"{at}/input"))
    )
    instructions = asked.get("instructions")
    if instructions is None:
        return messages
    return [{"role": "system", "content": text(instructions, f"{at}/instructions")}, *messages]


def _messages(items: Iterable[Any], at: str) -> Iterable[Json]:
    """Chat messages: consecutive texts, reasoning and calls of the assistant make one message."""
    pending: Json | None = None
    for index, raw in enumerate(items):
        place = f"{at}/{index}"
        item = require_object(raw, pointer=place)
        kind = item.get("type", "message")
        if kind == "function_call_output" or (kind == "message" and item.get("role") != "assistant"):
            if pending is not None:
                yield pending
            pending = None
            yield _other(item, kind, place)
            continue
        if pending is not None and kind in ("message", "reasoning") and _is_over(pending, kind):
            yield pending
            pending = None
        pending = _own(item, kind, pending or {"role": "assistant", "content": None}, place)
    if pending is not None:
        yield pending


def _is_over(pending: Json, kind: str) -> bool:
    """Whether the assistant starts another message: this one has text or calls already."""
    return pending["content"] is not None or "tool_calls" in pending


def _other(item: Json, kind: str, at: str) -> Json:
    if kind == "function_call_output":
        return {
            "role": "tool",
            "tool_call_id": item.get("call_id"),
            "content": _text(item.get("output"), f"{at}/output"),
        }
    role = item.get("role")
    if role not in ("user", "system", "developer"):
        raise InvalidRecord(f"a message of the role {role!r} is not known.", pointer=f"{at}/role")
    return {
        "role": "system" if role == "developer" else role,
        "content": _text(item.get("content"), f"{at}/content"),
    }


def _own(item: Json, kind: str, pending: Json, at: str) -> Json:
    if kind == "message":
        return pending | {"content": _text(item.get("content"), f"{at}/content")}
    if kind == "reasoning":
        parts = item.get("content") or item.get("summary") or []
        return pending | {"reasoning_content": _text(parts, f"{at}/summary")}
    if kind == "function_call":
        function = {
            "name": text(item.get("name"), f"{at}/name"),
            "arguments": text(item.get("arguments"), f"{at}/arguments"),
        }
        call = {"id": item.get("call_id") or item.get("id"), "type": "function", "function": function}
        return pending | {"tool_calls": [*pending.get("tool_calls", []), call]}
    raise InvalidRecord(
        f"an item of the type {kind!r} is not known; known are message, reasoning, function_call and "
        "function_call_output.",
        pointer=f"{at}/type",
    )


def _text(value: Any, at: str) -> str:
    """Of a string, or of parts."""
    if isinstance(value, str):
        return value
    parts = []
    for index, raw in enumerate(require_list(value, pointer=at)):
        part = require_object(raw, pointer=f"{at}/{index}")
        kind = part.get("type")
        if kind not in _TEXTS:
            raise InvalidRecord(f"a part of the type {kind!r} has no text.", pointer=f"{at}/{index}/type")
        parts.append(text(part.get("text", part.get("refusal")), f"{at}/{index}/text"))
    return "\n".join(parts)


WIRES = (
    Wire(
        "/compat/nemo-gym/{endpoint}/verify",
        parse,
        reply,
        "NeMo-Gym: the reward of a response",
        ("responses_create_params", "response"),
    ),
)
