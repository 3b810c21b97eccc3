"""Risks of each step that came with the item."""

from collections.abc import Callable

from workers.engine.rules.agent_text import agent_steps
from workers.engine.rules.references import metadata_of
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.risk_maps import risk_map
from workers.schema.step_parts import RiskMap

_HINT = 'metadata.risks is {"name of a risk": [a number from 0 to 1 for each agent step]}.'


def penalty(rule: RiskMap, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Minus the weighted mean over risks of each one's highest or mean value: -1 to 0."""
    steps = len(agent_steps(item))
    found = risk_map(metadata_of(item, "risks"), steps)
    if found is None:
        raise RewardError(f"{_HINT} This item has {steps} agent steps.", pointer="/metadata/risks")
    weights = rule.risks or dict.fromkeys(found, 1.0)
    if missing := [name for name in weights if name not in found]:
        raise RewardError(
            f"the item has no risk {missing[0]!r}; it has {', '.join(found)}.", pointer="/metadata/risks"
        )
    total = sum(weights.values())
    earned = [0.0] * steps
    for name, weight in weights.items():
        highest = 0.0
        for step, risk in enumerate(found[name]):
            if rule.over == "mean":
                earned[step] -= weight / total * risk / steps
            elif risk > highest:
                earned[step] -= weight / total * (risk - highest)
                highest = risk
    return ModelScore.sum_of_steps(earned)
