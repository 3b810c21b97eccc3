"""Items as trainers send them: what is rendered chat text is read back into the messages it stands for."""

import dataclasses
import json
from typing import Any

import msgspec

from workers.schema.chat_text import (
    IN_TEXT,
    ChatFormat,
    mentions_marks,
    read_pair,
    read_prompt,
    read_whole,
    strip_end_marks,
)
from workers.schema.items import Content, RenderedText, ScoreInput, Text, parse_item
from workers.schema.records import Step, Trajectory

Json = dict[str, Any]


def parse_scored_item(value: Any, *, pointer: str = "", extra_keys: tuple[str, ...] = ()) -> ScoreInput:
    """As `parse_item`; text that a known chat template rendered is read back into messages. Marks of end and padding,
    which a tokenizer's decoding leaves, are no content in any form."""
    item = parse_item(value, pointer=pointer, extra_keys=extra_keys)
    prompt, response = value.get("prompt"), value.get("response")
    if not isinstance(prompt, str):
        return dataclasses.replace(item, content=_without_end_marks(item.content))
    document, flags = _read_pair(prompt, response)
    content = parse_item(value | document, pointer=pointer, extra_keys=extra_keys).content
    if "response" not in document:
        content = _without_end_marks(content)
    return dataclasses.replace(
        item, content=content, flags=flags, rendered=RenderedText(prompt, response, flags)
    )


def parse_whole_text(text: str, *, pointer: str = "") -> ScoreInput:
    """A conversation that a protocol sends as one text; plain text is one agent step."""
    item = parse_item({"text": text}, pointer=pointer)
    read = read_whole(text)
    flags = () if read is None else read.flags
    if read is None:
        content = _without_end_marks(item.content)
    else:
        content = parse_item({"messages": read.messages}, pointer=pointer).content
    return dataclasses.replace(item, content=content, flags=flags, rendered=RenderedText(None, text, flags))


def read_again(item: ScoreInput, named: ChatFormat) -> ScoreInput:
    """The item by the policy's chat template, which its endpoint names: roles are read in responses too."""
    text = item.rendered
    if text is None:
        return item
    if text.prompt is None:
        read = read_whole(text.response, named)
    elif isinstance(text.response, str):
        read = read_pair(text.prompt, text.response, named)
    else:
        read = read_prompt(text.prompt, named)
    if read is None:
        return item
    if isinstance(text.response, str):
        content = parse_item({"messages": read.messages}).content
    else:
        content = _without_end_marks(parse_item({"prompt": read.prompt, "response": text.response}).content)
    others = tuple(flag for flag in item.flags if flag not in text.flags)
    rendered = dataclasses.replace(text, flags=read.flags)
    return dataclasses.replace(item, content=content, flags=(*read.flags, *others), rendered=rendered)


def _read_pair(prompt: str, response: Any) -> tuple[Json, tuple[str, ...]]:
    """What replaces the prompt and the response, and flags."""
    if (messages := _json_messages(prompt)) is not None:
        return {"prompt": messages}, ("messages_in_text",)
    if isinstance(response, str):
        if (read := read_pair(prompt, response)) is not None:
            return {"prompt": read.prompt, "response": read.response}, read.flags
    elif (read := read_prompt(prompt)) is not None:
        return {"prompt": read.prompt}, read.flags
    return {}, (IN_TEXT,) if mentions_marks(prompt) else ()


def _without_end_marks(content: Content) -> Content:
    """A text, or the agent's steps. A text of nothing else stays: there has to be something to score."""
    if isinstance(content, Text):
        return Text(strip_end_marks(content.text) or content.text)
    if not isinstance(content, Trajectory):
        return content
    steps = tuple(_without_marks(step) if step.source == "agent" else step for step in content.steps)
    same = all(new is old for new, old in zip(steps, content.steps, strict=True))
    return content if same else msgspec.structs.replace(content, steps=steps)


def _without_marks(step: Step) -> Step:
    if not step.message:
        reasoning = strip_end_marks(step.reasoning or "")
        return (
            step
            if reasoning == (step.reasoning or "")
            else msgspec.structs.replace(step, reasoning=reasoning)
        )
    *before, last = step.message
    text = strip_end_marks(last.text or "") if last.type == "text" else last.text
    if text == last.text:
        return step
    kept = (msgspec.structs.replace(last, text=text),) if text or not step.reasoning else ()
    return msgspec.structs.replace(step, message=(*before, *kept))


def _json_messages(text: str) -> list[Json] | None:
    """Chat messages that a data set has as one JSON text."""
    if not text.lstrip().startswith("[") or '"role"' not in text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_chat = isinstance(found, list) and found and all(isinstance(m, dict) and "role" in m for m in found)
    return found if is_chat else None
