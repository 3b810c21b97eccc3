"""Tool calls: whether they are well formed, and whether they are the right ones.

A policy's roll-out may come as plain text; `<tool_call>{...}</tool_call>` in it is a call like any other.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.rules.agent_text import agent_steps, message_of
from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, Step, parse_json
from workers.schema.components import ToolFormat, ToolMatch
from workers.schema.model_score import ModelScore
from workers.schema.patterns import TextPattern

_MOST_PAIRS = 1_000_000
_TAGGED = TextPattern(r"(?s)<tool_call>(.*?)(?:</tool_call>|$)")


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """arguments: None where they are no JSON object."""

    name: str
    arguments: Mapping[str, Any] | None

    @property
    def is_formed(self) -> bool:
        return bool(self.name) and self.arguments is not None


def formatted(rule: ToolFormat, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Well-formed calls / calls: 0 to 1, 1 without a call. Each step has earned what its calls add."""
    steps = [tool_calls(step) for step in agent_steps(item)]
    total = sum(map(len, steps))
    if not total:
        return ModelScore.sum_of_steps([*[0.0] * (len(steps) - 1), 1.0])
    return ModelScore.sum_of_steps([sum(call.is_formed for call in calls) / total for calls in steps])


def matched(rule: ToolMatch, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """(r_name + sum over matched calls of (r_param + r_value)) / its maximum: 0 to 1.

    r_name: names in common / all names, as multisets. r_param: of a pair of calls, parameter names in common / all.
    r_value: parameters with equal values. Pairs are matched greedily, the best first, among calls of one name.
    ToolRL (Qian et al., arXiv 2504.13958), section 3.3, its correctness reward mapped from [-3, 3] to [0, 1].
    """
    expected = expected_calls(item.reference)
    made = [call for step in agent_steps(item) for call in tool_calls(step)]
    score = match(made, expected, (rule.name_weight, rule.key_weight, rule.value_weight))
    return ModelScore.sum_of_steps([*[0.0] * (len(agent_steps(item)) - 1), score])


def match(
    made: Sequence[ParsedCall],
    expected: Sequence[ParsedCall],
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> float:
    """As `matched`; 1 where none was expected and none was made. weights: of r_name, r_param and r_value."""
    by_name, by_key, by_value = weights
    if not expected:
        return 1.0 if not made else 0.0
    if len(made) * len(expected) > _MOST_PAIRS:
        raise RewardError(f"{len(made)} calls are too many to compare with {len(expected)}.")
    score = by_name * _in_common([call.name for call in made], [call.name for call in expected])
    pairs = sorted(
        (
            (-_similarity(call, other, by_key, by_value), i, j)
            for i, call in enumerate(made)
            for j, other in enumerate(expected)
            if call.name == other.name
        )
    )
    used_made: set[int] = set()
    used_expected: set[int] = set()
    for value, i, j in pairs:
        if i not in used_made and j not in used_expected:
            used_made.add(i)
            used_expected.add(j)
            score -= value
    most = by_name + sum(by_key + by_value * len(call.arguments or {}) for call in expected)
    return score / most


def tool_calls(step: Step) -> list[ParsedCall]:
    calls = [
        ParsedCall(
            call.name, call.arguments if isinstance(call.arguments, dict) else _object(call.arguments_text)
        )
        for call in step.tool_calls
    ]
    return calls + [_tagged(text) for text in _TAGGED.findall(message_of(step))]


def message_without_calls(step: Step) -> str:
    """What the step says besides calls that are written into it."""
    return _TAGGED.sub("", message_of(step)).strip()


def expected_calls(reference: str | None) -> list[ParsedCall]:
    """Of JSON like [{"name": "refund", "arguments": {"order": 7}}, ...]. Raises RewardError at /reference."""
    hint = 'the reference is the right calls as JSON: [{"name": "...", "arguments": {...}}, ...].'
    if reference is None:
        raise RewardError(
            f"this endpoint compares tool calls, and the item has no reference; {hint}", pointer="/reference"
        )
    try:
        calls = parse_json(reference)
    except InvalidRecord as error:
        raise RewardError(f"{hint} This one is {error.message}", pointer="/reference") from None
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        raise RewardError(hint[0].upper() + hint[1:], pointer="/reference")
    return [ParsedCall(call["name"], call.get("arguments", {})) for call in calls]


def _is_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("arguments", {}), dict)
    )


def _tagged(text: str) -> ParsedCall:
    call = _object(text)
    if call is None:
        return ParsedCall("", None)
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        arguments = _object(arguments)
    return ParsedCall(
        name if isinstance(name, str) else "", arguments if isinstance(arguments, dict) else None
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _similarity(made: ParsedCall, expected: ParsedCall, by_key: float, by_value: float) -> float:
    """by_key * r_param + by_value * r_value of two calls of one name."""
    mine, theirs = made.arguments or {}, expected.arguments or {}
    equal = sum(key in mine and mine[key] == value for key, value in theirs.items())
    return by_key * _in_common(list(mine), list(theirs)) + by_value * equal


def _in_common(first: Sequence[str], second: Sequence[str]) -> float:
    """Intersection over union of multisets; 1 for two empty ones."""
    both = (Counter(first) & Counter(second)).total()
    union = len(first) + len(second) - both
    return both / union if union else 1.0
