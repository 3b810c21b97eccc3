"""From the bytes of a request to what is to be scored. Runs in a pool of threads, off the event loop."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.rewards.serving.problems import Problem
from apps.rewards.serving.stored import stored_trajectory
from workers.engine import Content
from workers.errors import InvalidRecord
from workers.schema import Item, TrajectoryId, parse_item, parse_json
from workers.schema.decode import kind_of, require_list, require_object

_LABEL = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
KEYS = ("inputs", "steps", "criteria", "uncertainty", "version", "run", "policy_version")


@dataclass(frozen=True, slots=True)
class Tags:
    """Which run and policy the items are of, so that drift can be told per policy."""

    run: str | None = None
    policy_version: str | None = None


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    items: tuple[Item, ...]
    steps: bool
    uncertainty: bool
    version: int | None
    tags: Tags


def parse_score(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """Raises InvalidRecord with the JSON pointer of what is wrong."""
    document = read_document(body)
    unknown = next((key for key in document if key not in KEYS), None)
    if unknown is not None:
        message = f"unknown key {unknown!r}; a request may have {', '.join(KEYS)}."
        raise InvalidRecord(message, pointer=f"/{unknown}")
    if document.get("criteria") is not None:
        raise InvalidRecord(
            "this endpoint has no criterion head, so it cannot score criteria; leave `criteria` out.",
            pointer="/criteria",
        )
    inputs = require_list(document.get("inputs"), pointer="/inputs")
    return ScoreRequest(
        items=tuple(parse_item(raw, pointer=f"/inputs/{index}") for index, raw in enumerate(inputs)),
        steps=_flag(document, "steps"),
        uncertainty=_flag(document, "uncertainty"),
        version=_version(document.get("version")),
        tags=parse_tags(document, headers),
    )


def read_document(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Problem 400 where it is no JSON, InvalidRecord where it is no object."""
    try:
        document = parse_json(body)
    except InvalidRecord as error:
        raise Problem(f"The body is {error.message}", status=400) from None
    return require_object(document)


def parse_tags(document: Mapping[str, Any], headers: Mapping[str, str]) -> Tags:
    """`run` and `policy_version` of the body, else of the headers."""
    return Tags(
        run=_label(document, "run", headers, "X-Touchstone-Run"),
        policy_version=_label(document, "policy_version", headers, "X-Touchstone-Policy"),
    )


def contents_of(items: Sequence[Item], project: str) -> list[Content]:
    """What is scored of each item. Only `trajectory_id` reads the database."""
    contents: list[Content] = []
    for index, item in enumerate(items):
        content = item.content
        if isinstance(content, TrajectoryId):
            content = stored_trajectory(content.id, project, pointer=f"/inputs/{index}/trajectory_id")
        contents.append(content)
    return contents


def _flag(document: dict[str, Any], name: str) -> bool:
    value = document.get(name, True)
    if not isinstance(value, bool):
        raise InvalidRecord(f"expected true or false, got {kind_of(value)}.", pointer=f"/{name}")
    return value


def _version(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidRecord("a version is a whole number, as `version` of a reply.", pointer="/version")
    return value


def _label(document: Mapping[str, Any], key: str, headers: Mapping[str, str], header: str) -> str | None:
    value = document.get(key)
    where = f"/{key}"
    if value is None:
        value, where = headers.get(header), ""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        name = key if where else f"the header {header}"
        raise InvalidRecord(f"{name} is text of 1 to 200 printable characters.", pointer=where or None)
    return value
