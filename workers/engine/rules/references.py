"""What comes with an item: the right answer, as text or as JSON with a part for each component that compares; and
metadata."""

from typing import Any

from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, Trajectory, parse_json


def reference_text(item: ScoreInput) -> str | None:
    """Of the item, or else of its task."""
    content = item.content
    if item.reference is None and isinstance(content, Trajectory):
        return content.task.reference
    return item.reference


def reference_part(item: ScoreInput, key: str, hint: str) -> Any:
    """The value of `key` where the reference is a JSON object that has it, else all of it; text where it is no JSON
    array or object. Raises RewardError at /reference, with the hint, where there is none."""
    text = reference_text(item)
    if text is None:
        raise RewardError(f"the item has no reference; {hint}", pointer="/reference")
    try:
        value = parse_json(text)
    except InvalidRecord:
        return text
    if isinstance(value, dict) and key in value:
        return value[key]
    return value if isinstance(value, dict | list) else text


def metadata_of(item: ScoreInput, key: str) -> Any:
    """Of the item, or else of the stored trajectory that it names; None where neither has it."""
    content = item.content
    stored = content.metadata if isinstance(content, Trajectory) else {}
    return item.metadata.get(key, stored.get(key))


def texts_of(value: Any, hint: str) -> list[str]:
    """Texts and numbers of a list, or the only one. Raises RewardError at /reference for anything else, or none."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(
        isinstance(one, str | int | float) and not isinstance(one, bool) for one in values
    ):
        raise RewardError(hint[0].upper() + hint[1:], pointer="/reference")
    return [str(one) for one in values]
