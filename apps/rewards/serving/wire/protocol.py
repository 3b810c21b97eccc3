"""What a wire protocol is: how its request is read, and how its reply is written.

A reference answer and conditions come where a trainer's client can send them: with each sample (labels, rows), in keys
of the body next to the inputs, or in the address (`address_conditions`); in this order, the first one counts.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from touchstone_client.values import conditions_of, label_values, reference_of

from apps.rewards.serving.requests import ScoreRequest, limited, parse_tags
from apps.rewards.serving.response import ScoreResponse
from workers.engine import ItemScore
from workers.errors import InvalidRecord
from workers.schema import ScoreInput
from workers.schema.conditions import CONDITIONS, parse_conditions
from workers.schema.decode import clean, json_type_name, require_list
from workers.schema.rendered_items import parse_scored_item, parse_whole_text

Parse = Callable[[bytes, Mapping[str, str]], ScoreRequest]


@dataclass(frozen=True, slots=True)
class Wire:
    """path: with `{endpoint}`, or the request's `model` names it. Unknown keys are ignored.

    What its request and reply are is in `wire_schemas`, for the OpenAPI document. finish: called in a parser
    thread before anything is recorded.
    """

    path: str
    parse: Parse
    reply: Callable[[ScoreResponse], Any]
    methods: tuple[str, ...] = ("POST",)
    finish: Callable[[ScoreResponse], None] | None = None


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


def text_item(value: Any, at: str) -> ScoreInput:
    """A whole conversation as one text: rendered chat text is read back into messages."""
    return parse_whole_text(text(value, at), pointer=at)


def pair_item(prompt: Any, response: Any, at: str) -> ScoreInput:
    return parse_scored_item({"prompt": prompt, "response": response}, pointer=at)


def with_label(item: ScoreInput, label: Any, at: str) -> ScoreInput:
    """The item with what its label stands for, see `label_values`."""
    return _with_values(item, label_values(label), at)


def with_row(item: ScoreInput, row: Mapping[str, Any], at: str) -> ScoreInput:
    """The item with the reference answer and the conditions in the fields of its row, where it has none yet."""
    return _with_values(item, _row_values(row), at)


def wire_request(
    document: Mapping[str, Any],
    headers: Mapping[str, str],
    items: Sequence[ScoreInput],
    *,
    pointer: str | None = None,
    **options: Any,
) -> ScoreRequest:
    """The request for these items, with the reference answers and conditions in keys of the body: one for all items,
    or a list with one for each. options: further fields of ScoreRequest."""
    found = list(items)
    for name in CONDITIONS:
        if (value := document.get(name)) is not None:
            values = _by_item(value, len(items), f"/{name}", pointer)
            found = [with_row(item, {name: each}, "") for item, each in zip(found, values, strict=True)]
    tags = parse_tags(document, headers)
    return ScoreRequest(tuple(found), steps=False, tags=tags, pointer=pointer, **options)


def address_conditions(items: Sequence[ScoreInput], query: Mapping[str, str]) -> tuple[ScoreInput, ...]:
    """The items with the conditions in the address, for those that have none: what holds for all of a training, of
    trainers whose clients send no further fields."""
    values = _row_values(query)
    return tuple(_with_values(item, values, "") for item in items)


def _by_item(value: Any, count: int, at: str, pointer: str | None) -> list[Any]:
    """pointer: of the list of items; None where the request is for one, whose value may be a list."""
    if pointer is None or not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise InvalidRecord(
            f"has {len(value)} values for {count} inputs; send one for all of them, or one for each.",
            pointer=at,
        )
    return value


def _row_values(row: Mapping[str, Any]) -> dict[str, str]:
    return reference_of(row.get("reference")) | conditions_of(row)


def _with_values(item: ScoreInput, values: Mapping[str, str], at: str) -> ScoreInput:
    """values: `reference` and conditions, after those that the item has."""
    if not values:
        return item
    known, _ = clean(dict(values))
    reference = known.get("reference") if item.reference is None else item.reference
    conditions = parse_conditions(known, pointer=at) | item.conditions
    return dataclasses.replace(item, reference=reference, conditions=conditions)


def flag(document: Mapping[str, Any], name: str) -> bool | None:
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRecord(f"expected true or false, got {json_type_name(value)}.", pointer=f"/{name}")
    return value


def flags_of(score: ItemScore) -> dict[str, Any]:
    """A field for replies that have room for it, where there are flags: no truncation is silent."""
    return {"flags": list(score.flags)} if score.flags else {}
