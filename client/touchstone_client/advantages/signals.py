"""What a trainer may want to know of a group besides its advantages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from touchstone_client.advantages.values import Rollout

SUCCESS = 0.5


@dataclass(frozen=True, slots=True)
class GroupSignal:
    """success: share of roll-outs that reach a reward. has_signal: their rewards differ, so that there is something to
    learn from the group."""

    success: float
    has_signal: bool


def group_signals(groups: Sequence[Sequence[Rollout]], success: float = SUCCESS) -> list[GroupSignal]:
    """One for each group. success: from which reward on a roll-out is one. An empty group has no signal."""
    return [
        GroupSignal(
            sum(rollout.reward >= success for rollout in group) / len(group) if group else 0.0,
            len({rollout.reward for rollout in group}) > 1,
        )
        for group in groups
    ]


def instruction_rewards(groups: Sequence[Sequence[Rollout]]) -> dict[str, float]:
    """By instruction, the mean reward of the roll-outs in which it held, over all groups."""
    found: dict[str, list[float]] = {}
    for group in groups:
        for rollout in group:
            for name in dict.fromkeys(rollout.instruction):
                found.setdefault(name, []).append(rollout.reward)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}
