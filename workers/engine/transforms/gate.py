"""What a component's value lets through: of the whole, and of each step."""

from itertools import pairwise

from workers.engine.item_score import ItemScore
from workers.schema.transforms import Gate, TurnGate


def gate(reward: float, value: float, at_least: float, otherwise: float) -> float:
    """`otherwise` where the gate's value is below `at_least`, else the reward: in {reward, otherwise}."""
    return reward if value >= at_least else otherwise


def apply(transform: Gate, reward: float, score: ItemScore) -> float:
    return gate(reward, score.values[transform.component], transform.at_least, transform.otherwise)


def apply_to_steps(transform: TurnGate, score: ItemScore) -> ItemScore:
    """min(gain, 0) where the component adds less than `at_least` at the step: what has gathered is at most what had."""
    added = [after - before for before, after in pairwise(score.potentials[transform.component])]
    return score.with_gains(
        [
            gain if value >= transform.at_least else min(gain, 0.0)
            for gain, value in zip(score.gains, added, strict=True)
        ]
    )
