"""Which tasks to run next."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workers.task_difficulty.success_model import SuccessEstimate


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """label: for people. key: the least comes first."""

    label: str
    key: Callable[[SuccessEstimate], float]


ORDERS: Mapping[str, TaskOrder] = {
    "difficulty": TaskOrder("Easiest first", lambda estimate: -estimate.success),
    "learnability": TaskOrder("Most to learn first", lambda estimate: -estimate.learnability),
    "uncertainty": TaskOrder("Least known first", lambda estimate: estimate.low - estimate.high),
}


def ordered_tasks(estimates: Sequence[SuccessEstimate], order: str) -> list[int]:
    """The places of the estimates, those to run first at the front; equal ones as they were."""
    key = ORDERS[order].key
    return sorted(range(len(estimates)), key=lambda place: (key(estimates[place]), place))


def draw_tasks(
    estimates: Sequence[SuccessEstimate], count: int, dice: random.Random, *, uniform: float = 0.1
) -> list[int]:
    """`count` places, drawn in proportion to learnability; the share `uniform` of the chance is spread over all, so
    that no task is forgotten."""
    total = sum(estimate.learnability for estimate in estimates) or 1.0
    chances = [
        (1 - uniform) * estimate.learnability / total + uniform / len(estimates) for estimate in estimates
    ]
    return dice.choices(range(len(estimates)), chances, k=count)
