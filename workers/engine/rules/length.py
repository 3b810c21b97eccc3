"""Penalties of length: in steps, and in tokens the agent wrote."""

from collections.abc import Callable

from workers.engine.rules.agent_text import texts
from workers.schema import Features, ScoreInput, Trajectory
from workers.schema.components import StepPenalty, TokenPenalty
from workers.schema.model_score import ModelScore


def steps(rule: StepPenalty, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """-1 for every agent step beyond `free`: at most 0. Token ids and texts are one step, rows of features one each."""
    content = item.content
    number = 1
    if isinstance(content, Trajectory):
        number = len(content.agent_steps)
    elif isinstance(content, Features):
        number = len(content.rows)
    return ModelScore.sum_of_steps([-1.0 if step >= rule.free else 0.0 for step in range(number)])


def tokens(rule: TokenPenalty, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """-(tokens beyond `free`) / `per`: at most 0. Each step pays for what it wrote beyond it."""
    total, paid = 0, []
    for text in texts(item):
        before, total = total, total + count(text)
        paid.append(-(max(0, total - rule.free) - max(0, before - rule.free)) / rule.per)
    return ModelScore.sum_of_steps(paid)
