"""The events of a streamed answer, put together as the response that they are the pieces of.

Of OpenAI's Responses API (`response.output_text.delta` and others), chat completions (`chat.completion.chunk`),
Anthropic (`message_start`, `content_block_delta`), Gemini (responses with pieces of one content), Bedrock
(`contentBlockDelta`), and those of `further_streams`.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from apps.trajectories.formats.chat import further_streams, partial_calls
from apps.trajectories.formats.placed import object_at, objects, text_at

Event = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ANTHROPIC = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop", "ping"),
)
_BEDROCK = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop")


def kind_of(event: Any) -> str:
    """Which API an event is of; empty for none. A whole response of Gemini looks as an event of its stream does."""
    if not isinstance(event, dict):
        return ""
    kind = event.get("type")
    if event.get("object") == "chat.completion.chunk" or _is_piece(event):
        return "chat"
    if further_streams.is_interaction(event):
        return "interaction"
    if further_streams.is_cohere(event):
        return "cohere"
    if further_streams.is_ollama(event):
        return "ollama"
    if isinstance(kind, str):
        if kind.startswith("response.") and isinstance(
            event.get("response", event.get("sequence_number", 0)), dict | int
        ):
            return "responses"
        return "anthropic" if kind in _ANTHROPIC and "role" not in event else ""
    if isinstance(event.get("candidates"), list):
        return "gemini"
    if any(isinstance(event.get(key), dict) for key in _BEDROCK):
        return "bedrock"
    return "completion" if further_streams.is_completion(event) else ""


def _is_piece(event: Event) -> bool:
    """Whether a completion is a piece of a stream: it has no end, or is the empty one that Azure sends first."""
    choices = event.get("choices")
    if choices == []:
        return "prompt_filter_results" in event
    if isinstance(choices, list) and isinstance(choices[0], dict) and "object" not in event:
        return isinstance(choices[0].get("delta"), dict) and "message" not in choices[0]
    ends = [choice.get("finish_reason") for choice in objects(choices) if "text" in choice]
    return event.get("object") == "text_completion" and bool(ends) and not any(ends)


def begins(event: Event) -> str | None:
    """What names the answer that an event belongs to; None for the one of the event before."""
    if event.get("type") in ("response.created", "message_start"):
        return text_at(object_at(event, "response", "message"), "id") or None
    if event.get("type") == "message-start" or str(event.get("event_type")).startswith("interaction.created"):
        return text_at(event, "id") or text_at(object_at(event, "interaction"), "id") or None
    if isinstance(event.get("choices"), list) or isinstance(event.get("candidates"), list):
        return text_at(event, "id", "responseId") or None
    return None


def assembled(events: Sequence[Event]) -> Event:
    """The response of the events of one answer."""
    kind = next(filter(None, map(kind_of, events)), "")
    return _ASSEMBLERS[kind]([event for event in events if isinstance(event, dict)]) if kind else {}


def _responses(events: list[Event]) -> Event:
    held = [event for event in events if isinstance(event.get("response"), dict)]
    response: Event = held[-1]["response"] if held else {}
    if response.get("output") and held[-1].get("type") in _ENDS:
        return {"object": "response"} | response
    items: dict[int, Event] = {}
    for event in events:
        place, item = event.get("output_index"), event.get("item")
        if not isinstance(place, int):
            continue
        if isinstance(item, dict):
            if event.get("type") == "response.output_item.done" or place not in items:
                items[place] = dict(item)
        elif isinstance(event.get("delta"), str) and place in items:
            _add_delta(items[place], str(event.get("type")), event["delta"])
    output = [items[place] for place in sorted(items)]
    error = next((event for event in events if event.get("type") == "error"), None)
    failed = {"error": error} if error and not response.get("error") else {}
    return {"object": "response"} | response | failed | {"output": output}


def _add_delta(item: Event, kind: str, delta: str) -> None:
    if kind in ("response.output_text.delta", "response.refusal.delta"):
        name = "text" if "output_text" in kind else "refusal"
        parts = objects(item.get("content")) or [{"type": f"output_{name}", name: ""}]
        parts[-1] = parts[-1] | {name: str(parts[-1].get(name) or "") + delta}
        item["content"] = parts
    elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        parts = objects(item.get("summary")) or [{"type": "summary_text", "text": ""}]
        parts[-1] = parts[-1] | {"text": str(parts[-1].get("text") or "") + delta}
        item["summary"] = parts
    elif kind.endswith(("arguments.delta", "input.delta", "code.delta")):
        name = "arguments" if "arguments" in kind else "input" if "input" in kind else "code"
        item[name] = str(item.get(name) or "") + delta


def _chat(events: list[Event]) -> Event:
    messages: dict[int, Event] = {}
    ends: dict[int, Any] = {}
    whole: Event = {}
    for event in events:
        whole |= {key: value for key, value in event.items() if key != "choices" and value is not None}
        for choice in objects(event.get("choices")):
            place = choice.get("index")
            place = place if isinstance(place, int) else 0
            message = messages.setdefault(place, {"role": "assistant", "content": None})
            _add_chunk(message, object_at(choice, "delta", "message"))
            if isinstance(choice.get("text"), str):
                message["content"] = (message["content"] or "") + choice["text"]
            ends[place] = choice.get("finish_reason") or ends.get(place)
    choices = [
        {"index": place, "message": message, "finish_reason": ends[place]}
        for place, message in sorted(messages.items())
    ]
    return whole | {"object": "chat.completion", "choices": choices}


def _add_chunk(message: Event, delta: Event) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            for call in objects(value):
                _add_call(message.setdefault("tool_calls", []), call)
        elif key == "role" or value is None:
            continue
        elif (isinstance(value, str) and isinstance(message.get(key), str)) or (
            isinstance(value, list) and isinstance(message.get(key), list)
        ):
            message[key] += value
        else:
            message[key] = value


def _add_call(calls: list[Event], piece: Event) -> None:
    """Pieces of a call have its `index`; one with a new id is a new call where there is none."""
    place = piece.get("index")
    known = next((call for call in calls if call.get("index") == place and place is not None), None)
    if known is None and place is None and calls and piece.get("id") in (None, "", calls[-1].get("id")):
        known = calls[-1]
    if known is None:
        calls.append(piece | {"function": dict(object_at(piece, "function"))})
        return
    function = known["function"]
    for key, value in object_at(piece, "function").items():
        if isinstance(value, str):
            function[key] = (
                (function.get(key) or "") + value if key == "arguments" else function.get(key) or value
            )
    known |= {key: value for key, value in piece.items() if value and key not in ("function", "index")}


def _anthropic(events: list[Event]) -> Event:
    message: Event = {"type": "message", "role": "assistant", "stop_reason": None}
    blocks: dict[int, Event] = {}
    for event in events:
        place = event.get("index")
        place = place if isinstance(place, int) else 0
        if event.get("type") == "message_start":
            message |= object_at(event, "message")
        elif event.get("type") == "content_block_start":
            blocks[place] = dict(object_at(event, "content_block"))
        elif event.get("type") == "content_block_delta" and place in blocks:
            _add_block_delta(blocks[place], object_at(event, "delta"))
        elif event.get("type") == "message_delta":
            message |= object_at(event, "delta")
            usage = object_at(message, "usage") | object_at(event, "usage")
            message |= {"usage": usage} if usage else {}
        elif event.get("type") == "error":
            message |= {"error": event.get("error")}
    return message | {"content": [_with_input(blocks[place]) for place in sorted(blocks)]}


def _add_block_delta(block: Event, delta: Event) -> None:
    pieces = {
        "text": "text",
        "thinking": "thinking",
        "partial_json": "partial_json",
        "signature": "signature",
        "content": "content",
    }
    for key, name in pieces.items():
        if isinstance(delta.get(key), str):
            block[name] = str(block.get(name) or "") + delta[key]
    if isinstance(delta.get("citation"), dict):
        block["citations"] = [*objects(block.get("citations")), delta["citation"]]


def _with_input(block: Event) -> Event:
    """The input of a call came as text."""
    text = block.pop("partial_json", "")
    if not text:
        return block
    try:
        return block | {"input": json.loads(text)}
    except ValueError:
        return block | {"input": text}


def _gemini(events: list[Event]) -> Event:
    whole: Event = {}
    contents: dict[int, list[Event]] = {}
    ends: dict[int, Event] = {}
    for event in events:
        whole |= {key: value for key, value in event.items() if key != "candidates" and value is not None}
        for candidate in objects(event.get("candidates")):
            place = candidate.get("index")
            place = place if isinstance(place, int) else 0
            parts = contents.setdefault(place, [])
            for part in objects(object_at(candidate, "content").get("parts")):
                _add_part(parts, part)
            ends.setdefault(place, {}).update(
                {key: value for key, value in candidate.items() if key != "content"}
            )
    candidates = [
        {"content": {"role": "model", "parts": contents[place]}} | ends[place] for place in sorted(contents)
    ]
    return whole | {"candidates": candidates}


def _add_part(parts: list[Event], part: Event) -> None:
    last = parts[-1] if parts else {}
    if partial_calls.goes_on(last, part):
        parts[-1] = partial_calls.continued(last, part)
        return
    part = partial_calls.begun(part)
    joins = isinstance(part.get("text"), str) and isinstance(last.get("text"), str)
    if joins and last.get("thought") == part.get("thought"):
        parts[-1] = last | part | {"text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _bedrock(events: list[Event]) -> Event:
    blocks: dict[int, Event] = {}
    whole: Event = {}
    for event in events:
        delta = object_at(event, "contentBlockDelta", "contentBlockStart")
        place = delta.get("contentBlockIndex")
        if isinstance(place, int):
            _add_bedrock(blocks.setdefault(place, {}), object_at(delta, "start") | object_at(delta, "delta"))
        whole |= object_at(event, "metadata") | object_at(event, "messageStop")
    content = [blocks[place] for place in sorted(blocks)]
    return whole | {
        "stopReason": whole.get("stopReason"),
        "output": {"message": {"role": "assistant", "content": content}},
    }


def _add_bedrock(block: Event, delta: Event) -> None:
    if isinstance(delta.get("text"), str):
        block["text"] = str(block.get("text") or "") + delta["text"]
    for key in ("toolUse", "reasoningContent"):
        held = object_at(block, key)
        for name, value in object_at(delta, key).items():
            before = held.get(name)
            held = held | {
                name: before + value if isinstance(before, str) and isinstance(value, str) else value
            }
        if held:
            block[key] = held


_ASSEMBLERS: dict[str, Callable[[list[Event]], Event]] = {
    "responses": _responses,
    "chat": _chat,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": further_streams.cohere,
    "interaction": further_streams.interaction,
    "ollama": further_streams.ollama,
    "completion": further_streams.completion,
}
