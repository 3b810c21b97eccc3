"""A regular expression over what the agent wrote."""

from collections.abc import Callable

from workers.engine.rules.agent_text import texts
from workers.schema import ScoreInput
from workers.schema.components import Pattern
from workers.schema.model_score import ModelScore
from workers.schema.patterns import compiled


def rate(rule: Pattern, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """1 where it is found, else 0; the step it is found in first has earned it."""
    by_step = texts(item)
    found, expression = [0.0] * len(by_step), compiled(rule.expression)
    for step in range(len(by_step)) if rule.within == "all" else [len(by_step) - 1]:
        if expression.search(by_step[step]) is not None:
            found[step] = 1.0
            break
    return ModelScore.sum_of_steps(found)
