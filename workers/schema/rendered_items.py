"""Items as trainers send them: what is rendered chat text is read back into the messages it stands for."""

import dataclasses
import json
from typing import Any

from workers.schema.chat_text import (
    IN_TEXT,
    ChatFormat,
    mentions_marks,
    read_pair,
    read_whole,
    strip_end_marks,
)
from workers.schema.items import RenderedText, ScoreInput, parse_item

Json = dict[str, Any]


def parse_scored_item(value: Any, *, pointer: str = "", extra_keys: tuple[str, ...] = ()) -> ScoreInput:
    """As `parse_item`; text that a known chat template rendered is read back into messages."""
    item = parse_item(value, pointer=pointer, extra_keys=extra_keys)
    prompt, response = value.get("prompt"), value.get("response")
    if isinstance(response, str):
        text = RenderedText(prompt if isinstance(prompt, str) else None, response)
        if isinstance(prompt, str):
            return _read_pair(item, value, text, pointer, extra_keys)
        return _parse(value | {"response": strip_end_marks(response)}, item, pointer, extra_keys)
    if isinstance(prompt, str) and (read := _read_prompt(prompt)) is not None:
        before, flags = read
        return _parse(value | {"prompt": before}, item, pointer, extra_keys, flags)
    return item


def parse_whole_text(text: str, *, pointer: str = "") -> ScoreInput:
    """A conversation that a protocol sends as one text; plain text is one agent step."""
    item = parse_item({"text": text}, pointer=pointer)
    read = read_whole(text)
    if read is None:
        item = parse_item({"text": strip_end_marks(text) or text}, pointer=pointer)
        return dataclasses.replace(item, rendered=RenderedText(None, text))
    item = parse_item({"messages": read.messages}, pointer=pointer)
    return dataclasses.replace(item, flags=read.flags, rendered=RenderedText(None, text))


def read_again(item: ScoreInput, named: ChatFormat) -> ScoreInput:
    """The item by the policy's chat template, which its endpoint names: roles are read in responses too."""
    text = item.rendered
    if text is None:
        return item
    read = (
        read_whole(text.response, named)
        if text.prompt is None
        else read_pair(text.prompt, text.response, named)
    )
    if read is None:
        return item
    content = parse_item({"messages": read.messages}).content
    return dataclasses.replace(item, content=content, flags=read.flags)


def _read_pair(
    item: ScoreInput, value: Json, text: RenderedText, pointer: str, extra_keys: tuple[str, ...]
) -> ScoreInput:
    prompt = text.prompt or ""
    read = read_pair(prompt, text.response)
    if read is not None:
        document = value | {"prompt": read.prompt, "response": read.response}
        found = _parse(document, item, pointer, extra_keys, read.flags)
        return dataclasses.replace(found, rendered=text)
    document = value | {"response": strip_end_marks(text.response)}
    flags: tuple[str, ...] = ()
    if (messages := _json_messages(prompt)) is not None:
        document, flags = document | {"prompt": messages}, ("messages_in_text",)
    elif mentions_marks(prompt):
        flags = (IN_TEXT,)
    found = _parse(document, item, pointer, extra_keys, flags)
    return dataclasses.replace(found, rendered=text)


def _parse(
    document: Json,
    item: ScoreInput,
    pointer: str,
    extra_keys: tuple[str, ...],
    flags: tuple[str, ...] = (),
) -> ScoreInput:
    found = parse_item(document, pointer=pointer, extra_keys=extra_keys)
    return dataclasses.replace(found, flags=(*item.flags, *flags))


def _read_prompt(prompt: str) -> tuple[list[Json], tuple[str, ...]] | None:
    if (messages := _json_messages(prompt)) is not None:
        return messages, ("messages_in_text",)
    read = read_pair(prompt, "")
    return None if read is None else (read.prompt, read.flags)


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
