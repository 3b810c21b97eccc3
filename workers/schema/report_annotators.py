"""Where a report names annotators, who may be named by their e-mail addresses, and the report without their names."""

from typing import Any

# Keys of a report below which annotators are named.
ANNOTATOR_KEYS = ("annotator", "reliabilities", "adversaries")


def without_annotator_names(report: dict[str, Any]) -> dict[str, Any]:
    """A copy in which each annotator is `annotator 1`, `annotator 2`, ... throughout, as keys too."""
    numbers: dict[str, str] = {}

    def number(name: str) -> str:
        return numbers.setdefault(name, f"annotator {len(numbers) + 1}")

    def renamed(value: Any, *, is_name: bool) -> Any:
        if isinstance(value, dict) and is_name:
            return {number(name): each for name, each in value.items()}
        if isinstance(value, dict):
            return {key: renamed(each, is_name=key in ANNOTATOR_KEYS) for key, each in value.items()}
        if isinstance(value, list):
            return [renamed(each, is_name=is_name) for each in value]
        return number(value) if is_name and isinstance(value, str) and value else value

    return {key: renamed(each, is_name=key in ANNOTATOR_KEYS) for key, each in report.items()}
