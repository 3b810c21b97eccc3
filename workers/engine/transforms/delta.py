"""Differences of step scores."""

from collections.abc import Sequence
from dataclasses import replace

from workers.engine.item_score import ItemScore
from workers.schema.transforms import Delta


def differences(steps: Sequence[float]) -> tuple[float, ...]:
    """s_t - s_(t-1), with s_(-1) = 0. Their sums up to any step are that step's score: bounded by the largest one.

    After arXiv 2410.15115, whose difference is to the next step's score: what is still to come is then the step's.
    """
    return tuple(step - before for step, before in zip(steps, (0.0, *steps[:-1]), strict=True))


def apply(transform: Delta, score: ItemScore) -> ItemScore:
    """Steps become differences, and the raw reward what they add up to: the last step's score. The offset is 0."""
    raw = score.steps[-1]
    reward = score.reward + score.unit * (raw - score.raw)
    return replace(score, steps=differences(score.steps), raw=raw, offset=0.0, reward=reward)
