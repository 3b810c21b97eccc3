"""Items as trainers send them: what is rendered chat text is read back into the messages it stands for."""

import dataclasses
from typing import Any

import msgspec

from workers.errors import InvalidRecord
from workers.schema.bounded import loads
from workers.schema.chat_text import (
    IN_TEXT,
    ChatFormat,
    mentions_marks,
    read_pair,
    read_prompt,
    read_response,
    read_whole,
    strip_end_marks,
)
from workers.schema.items import Content, RenderedText, ScoreInput, Text, parse_item
from workers.schema.messages import from_messages
from workers.schema.records import Step, Trajectory

Json = dict[str, Any]


def parse_scored_item(value: Any, *, pointer: str = "", extra_keys: tuple[str, ...] = ()) -> ScoreInput:
    """As `parse_item`; text that a known chat template rendered is read back into messages. Marks of end and padding,
    which a tokenizer's decoding leaves, are no content in any form."""
    item = parse_item(value, pointer=pointer, extra_keys=extra_keys)
    if "prompt" not in value:
        return dataclasses.replace(item, content=_without_end_marks(item.content))
    sent = RenderedText(value["prompt"], value["response"])
    document, flags = _read(sent)
    content = parse_item(value | document, pointer=pointer, extra_keys=extra_keys).content
    return _as_read(item, sent, document, content, flags)


def parse_whole_text(text: str, *, pointer: str = "") -> ScoreInput:
    """A conversation that a protocol sends as one text; plain text is one agent step."""
    item = parse_item({"text": text}, pointer=pointer)
    sent = RenderedText(None, text)
    document, flags = _read(sent)
    return _as_read(item, sent, document, parse_item(document, pointer=pointer).content, flags)


def read_again(item: ScoreInput, named: ChatFormat) -> ScoreInput:
    """The item by the policy's chat template, which its endpoint names: roles are read in responses too."""
    if (sent := item.rendered) is None:
        return item
    document, flags = _read(sent, named)
    if flags == sent.flags and document == {"prompt": sent.prompt, "response": sent.response}:
        return item
    others = tuple(flag for flag in item.flags if flag not in sent.flags)
    found = _as_read(item, sent, document, parse_item(document).content, flags)
    return dataclasses.replace(found, flags=(*flags, *others))


def _read(sent: RenderedText, named: ChatFormat | None = None) -> tuple[Json, tuple[str, ...]]:
    """The form of the item as it is read, and flags."""
    prompt, response = sent.prompt, sent.response
    flags: tuple[str, ...] = ()
    if prompt is None:
        read = read_whole(response, named)
        return ({"text": response}, flags) if read is None else ({"messages": read.messages}, read.flags)
    if isinstance(prompt, str) and (messages := _json_messages(prompt)) is not None:
        prompt, flags = messages, ("messages_in_text",)
    elif isinstance(prompt, str) and isinstance(response, str):
        if (read := read_pair(prompt, response, named)) is not None:
            return {"prompt": read.prompt, "response": read.response}, read.flags
    elif isinstance(prompt, str) and (read := read_prompt(prompt, named)) is not None:
        return {"prompt": read.prompt, "response": response}, read.flags
    if isinstance(prompt, str):
        flags = (IN_TEXT,) if mentions_marks(prompt) else ()
    elif (
        named is not None
        and isinstance(response, str)
        and (read := read_response(response, named)) is not None
    ):
        response, flags = read.response, (*flags, *read.flags)
    return {"prompt": prompt, "response": response}, flags


def _as_read(
    item: ScoreInput, sent: RenderedText, document: Json, content: Content, flags: tuple[str, ...]
) -> ScoreInput:
    if any(form is sent.response for form in document.values()):  # no template was read in it
        content = _without_end_marks(content)
    sent = dataclasses.replace(sent, flags=flags)
    return dataclasses.replace(item, content=content, flags=flags, rendered=sent)


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
        found = loads(text)
    except ValueError:
        return None
    is_chat = isinstance(found, list) and found and all(isinstance(m, dict) and "role" in m for m in found)
    try:
        return found if is_chat and from_messages(found) else None
    except InvalidRecord:
        return None
