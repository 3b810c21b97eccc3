"""What a wire protocol is: how its request is read, and how its reply is written."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from touchstone_client.values import reference_of

from apps.rewards.serving.requests import ScoreRequest, limited
from apps.rewards.serving.response import ScoreResponse
from workers.engine import ItemScore
from workers.errors import InvalidRecord
from workers.schema import ScoreInput
from workers.schema.decode import clean, json_type_name, require_list
from workers.schema.rendered_items import parse_scored_item, parse_whole_text

Parse = Callable[[bytes, Mapping[str, str]], ScoreRequest]


@dataclass(frozen=True, slots=True)
class Wire:
    """path: with `{endpoint}`, or the request's `model` names it. Unknown keys are ignored.

    What its request and reply are is in `wire_schemas`, for the OpenAPI document.
    """

    path: str
    parse: Parse
    reply: Callable[[ScoreResponse], Any]
    methods: tuple[str, ...] = ("POST",)


def endpoint_of(document: Mapping[str, Any]) -> str:
    """The endpoint that `model` names. Some clients send the path of a folder: its last part counts."""
    name = document.get("model")
    if not isinstance(name, str) or not name.strip("/"):
        raise InvalidRecord("is missing; `model` must name the endpoint.", pointer="/model")
    return name.rstrip("/").rsplit("/", 1)[-1]


def text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise InvalidRecord(f"expected a string, got {json_type_name(value)}.", pointer=at)
    return value


def texts(value: Any, at: str) -> list[str]:
    """A list of texts; a single one counts as a list of one."""
    if isinstance(value, str):
        return [value]
    return [text(element, f"{at}/{index}") for index, element in enumerate(filled(value, at))]


def filled(value: Any, at: str) -> list[Any]:
    """A list with something in it."""
    found = limited(require_list(value, pointer=at), at)
    if not found:
        raise InvalidRecord("is empty, so there is nothing to score.", pointer=at)
    return found


def text_item(value: Any, at: str, label: Any = None) -> ScoreInput:
    """A whole conversation as one text: rendered chat text is read back into messages. label: see `reference_of`."""
    reference, _ = clean(reference_of(label))
    return dataclasses.replace(parse_whole_text(text(value, at), pointer=at), **reference)


def pair_item(prompt: Any, response: Any, at: str, label: Any = None) -> ScoreInput:
    """label: see `reference_of`."""
    return parse_scored_item({"prompt": prompt, "response": response} | reference_of(label), pointer=at)


def flag(document: Mapping[str, Any], name: str) -> bool | None:
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRecord(f"expected true or false, got {json_type_name(value)}.", pointer=f"/{name}")
    return value


def flags_of(score: ItemScore) -> dict[str, Any]:
    """A field for replies that have room for it, where there are flags: no truncation is silent."""
    return {"flags": list(score.flags)} if score.flags else {}
