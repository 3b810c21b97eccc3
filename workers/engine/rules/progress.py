"""Goals that a run reaches one after the other: milestones of the endpoint, subgoals of the task."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from workers.engine.rules.agent_text import observed, texts
from workers.engine.rules.references import reference_text
from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, Trajectory, parse_json
from workers.schema.model_score import ModelScore
from workers.schema.patterns import compiled, quote
from workers.schema.reference_parts import Subgoals
from workers.schema.step_parts import Milestones

Goal = tuple[Any, float]  # a compiled expression and its weight
_MOST_GOALS = 100
_MOST_WEIGHT = 1_000_000
_HINT = (
    "the subgoals of the task are a list in the key `subgoals` of the reference or the metadata: texts, or "
    f'{{"expression": RE2, "weight": number above 0}}}}; at most {_MOST_GOALS}.'
)


def milestones(rule: Milestones, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Reached / all, by weight: 0 to 1."""
    goals = [(compiled(one.expression), one.weight) for one in rule.milestones]
    return reached(goals, by_step(item, rule.within), in_order=rule.in_order)


def subgoals(rule: Subgoals, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Reached / all, by weight: 0 to 1. Raises RewardError for an item without subgoals."""
    return reached(_goals_of(item), by_step(item, rule.within), in_order=rule.in_order)


def by_step(item: ScoreInput, within: Literal["said", "seen", "both"]) -> list[str]:
    """By agent step, what it said, what it saw of it, or one after the other."""
    if within == "said":
        return texts(item)
    seen = observed(item)
    if within == "seen":
        return seen
    return [f"{said}\n{saw}" for said, saw in zip(texts(item), seen, strict=True)]


def reached(goals: Sequence[Goal], by_step: Iterable[str], *, in_order: bool) -> ModelScore:
    """Each step earns the weights of the goals first found in it, of all weights. Of those in order, several may be
    found in one step, wherever in it."""
    left = list(goals)
    total = sum(weight for _, weight in goals)
    earned = []
    for text in by_step:
        gained = 0.0
        still: list[Goal] = []
        for place, (expression, weight) in enumerate(left):
            if in_order and still:
                still.extend(left[place:])
                break
            if expression.search(text) is None:
                still.append((expression, weight))
            else:
                gained += weight
        left = still
        earned.append(gained / total)
    return ModelScore.sum_of_steps(earned)


def _goals_of(item: ScoreInput) -> list[Goal]:
    found = _listed(item)
    if not isinstance(found, list) or not 0 < len(found) <= _MOST_GOALS:
        raise RewardError(f"the item has no subgoals; {_HINT}", pointer="/reference")
    return [_goal(one) for one in found]


def _listed(item: ScoreInput) -> Any:
    text = reference_text(item)
    if text is not None:
        try:
            value = parse_json(text)
        except InvalidRecord:
            value = None
        if isinstance(value, list):
            return value
        if isinstance(value, dict) and "subgoals" in value:
            return value["subgoals"]
    content = item.content
    stored = content.task.metadata if isinstance(content, Trajectory) else {}
    return item.metadata.get("subgoals", stored.get("subgoals"))


def _goal(value: Any) -> Goal:
    if isinstance(value, str) and value.strip():
        return compiled(f"(?i){quote(value.strip())}"[:2000]), 1.0
    if isinstance(value, dict) and isinstance(value.get("expression"), str) and value["expression"]:
        weight = value.get("weight", 1.0)
        if isinstance(weight, int | float) and not isinstance(weight, bool) and 0 < weight <= _MOST_WEIGHT:
            try:
                return compiled(value["expression"]), float(weight)
            except InvalidRecord as error:
                raise RewardError(error.message, pointer="/reference") from None
    raise RewardError(_HINT[0].upper() + _HINT[1:], pointer="/reference")
