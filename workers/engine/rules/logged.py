"""Rewards of steps that came with the item."""

import math
from collections.abc import Callable

from workers.engine.rules.agent_text import agent_steps
from workers.errors import RewardError
from workers.schema import ScoreInput, Trajectory
from workers.schema.logged_rewards import logged_rewards
from workers.schema.model_score import ModelScore
from workers.schema.step_parts import BySpeaker, Logged

_HINT = (
    "send `metadata.step_rewards`, a list with a number for each agent step, or a trajectory whose steps have a "
    "`reward`."
)


def replayed(rule: Logged, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """The sum of the limited step rewards, or their mean: between `low` and `high`."""
    rewards = [min(max(reward, rule.low), rule.high) for reward in step_rewards(item)]
    share = len(rewards) if rule.total == "mean" else 1
    return ModelScore.sum_of_steps([reward / share for reward in rewards])


def by_speaker(rule: BySpeaker, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """own * the mean over agents of each one's mean reward + (1 - own) * the outcome: between `low` and `high`."""
    rewards = [min(max(reward, rule.low), rule.high) for reward in step_rewards(item)]
    names = [step.speaker or "" for step in agent_steps(item)]
    agents = sorted(set(names) & set(rule.speakers)) if rule.speakers else sorted(set(names))
    steps = [
        rule.own * reward / (names.count(name) * len(agents)) if name in agents else 0.0
        for name, reward in zip(names, rewards, strict=True)
    ]
    if rule.own < 1:
        outcome = item.content.reward if isinstance(item.content, Trajectory) else None
        if outcome is None:
            raise RewardError(
                "rewards by agent are mixed with the reward of the trajectory, and it has none; send a trajectory with "
                "a `reward`, or set `own` to 1."
            )
        steps[-1] += (1 - rule.own) * min(max(outcome, rule.low), rule.high)
    return ModelScore.sum_of_steps(steps)


def step_rewards(item: ScoreInput) -> list[float]:
    """By agent step. Raises RewardError where none came, and for a list that does not fit."""
    content = item.content
    given = item.metadata.get("step_rewards")
    steps = item.step_count
    if given is not None:
        if not isinstance(given, list) or len(given) != steps or not all(map(_is_number, given)):
            raise RewardError(
                f"step_rewards must be a list of {steps} finite numbers, one for each agent step.",
                pointer="/metadata/step_rewards",
            )
        return [float(reward) for reward in given]
    logged = logged_rewards(content) if isinstance(content, Trajectory) else None
    if logged is None:
        raise RewardError(
            f"this endpoint replays step rewards, and the item has none; {_HINT}", pointer="/metadata"
        )
    return logged


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
