"""Bounds of the reward from above, and of each step."""

from workers.engine.item_score import ItemScore
from workers.schema.transforms import Clip, StepClip


def clip(reward: float, eta: float) -> float:
    """min(reward - eta, 0), in (-inf, 0]; non-decreasing in reward."""
    return min(reward - eta, 0.0)


def apply(transform: Clip, reward: float, score: ItemScore) -> float:
    return clip(reward, transform.eta)


def apply_to_steps(transform: StepClip, score: ItemScore) -> ItemScore:
    """Every step at most 0, so that what has gathered never rises."""
    return score.with_gains([clip(gain, transform.eta) for gain in score.gains])
