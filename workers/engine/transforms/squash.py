"""Soft bounds of the reward, and of each step."""

import math

from workers.engine.item_score import ItemScore
from workers.schema.transforms import Squash, StepSquash


def squash(reward: float, scale: float) -> float:
    """scale * tanh(reward / scale), in [-scale, scale]; non-decreasing in reward, slope 1 at zero."""
    return scale * math.tanh(reward / scale)


def apply(transform: Squash, reward: float, score: ItemScore) -> float:
    return squash(reward, transform.scale)


def apply_to_steps(transform: StepSquash, score: ItemScore) -> ItemScore:
    """Every step within [-scale, scale], what has gathered after any step within [-total, total]."""
    gathered, gains = 0.0, []
    for gain in score.gains:
        before = gathered
        gathered = before + squash(gain, transform.scale)
        gathered = max(-transform.total, min(gathered, transform.total))
        gains.append(gathered - before)
    return score.with_gains(gains)
