"""Attributes of a span by their dotted names, however deep an exporter nested them."""

import json
from collections.abc import Mapping
from typing import Any

_DEEPEST = 32


def flat_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """{"llm": {"model_name": "m"}} as {"llm": {...}, "llm.model_name": "m"}; lists stay as they are."""
    found = dict(given)
    waiting = [(f"{key}.", value, 0) for key, value in given.items() if isinstance(value, dict)]
    for prefix, holder, depth in waiting:
        for key, value in holder.items():
            found.setdefault(f"{prefix}{key}", value)
            if isinstance(value, dict) and depth < _DEEPEST:
                waiting.append((f"{prefix}{key}.", value, depth + 1))
    return found


def attribute_tree(given: Mapping[str, Any], name: str) -> Any:
    """What stands under a name: {"a.0.b": 1, "a.1.b": 2} under `a` is [{"b": 1}, {"b": 2}]. None for nothing."""
    if given.get(name) is not None:
        value = given[name]
        if isinstance(value, str) and value[:1] in "[{":
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return given[name]
        return _expanded(value)
    start = f"{name}."
    below = {key[len(start) :]: value for key, value in given.items() if key.startswith(start)}
    return _expanded(below) if below else None


def _expanded(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return value
    if isinstance(value, list):
        return [_expanded(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    branches: dict[str, Any] = {}
    for key, item in value.items():
        first, _, rest = str(key).partition(".")
        if not rest:
            held = branches.get(first)
            branches[first] = held | item if isinstance(held, dict) and isinstance(item, dict) else item
            continue
        held = branches.get(first)
        branches[first] = (held if isinstance(held, dict) else {}) | {rest: item}
    if branches and all(key.isdecimal() for key in branches):
        ordered = sorted(branches.items(), key=lambda item: int(item[0][:9]))
        return [_expanded(item, depth + 1) for _, item in ordered]
    return {key: _expanded(item, depth + 1) for key, item in branches.items()}
