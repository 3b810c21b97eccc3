"""Potential-based shaping, with a weight that may fade."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from workers.engine.item_score import ItemScore
from workers.engine.transforms.squash import squash
from workers.schema.transforms import Shaping


def shaped(transform: Shaping, score: ItemScore, weight: float) -> ItemScore:
    """F_t = gamma phi_(t+1) - phi_t is added to step t (Ng et al., 1999); phi is 0 after the last (Grzes, 2017).

    Discounted by gamma, what has gathered after t steps is gamma^t phi_t - phi_0: it telescopes. The reward changes by
    that of the last step, so that trainers that read only the reward keep their best policy too.
    """
    phi = [squash(value, transform.bound) for value in score.potentials[transform.component]]
    if transform.end == "zero":
        phi[-1] = 0.0
    gains = [
        gain + weight * (transform.gamma * after - before)
        for gain, (before, after) in zip(score.gains, pairwise(phi), strict=True)
    ]
    whole = transform.gamma ** len(gains) * phi[-1] - phi[0]
    return score.with_gains(gains, reward=score.reward + weight * whole)


def faded(fades_at: float, rewards: Sequence[float]) -> list[float]:
    """For each of a group, the share of the others whose reward is below `fades_at`; 1 without others. It does not
    depend on an item's own reward."""
    below = [reward < fades_at for reward in rewards]
    others = len(rewards) - 1
    return [(sum(below) - own) / others if others else 1.0 for own in below]


def apply(transform: Shaping, group: Sequence[ItemScore]) -> list[ItemScore]:
    weights = [transform.weight] * len(group)
    if transform.fades_at is not None:
        shares = faded(transform.fades_at, [score.reward for score in group])
        weights = [transform.weight * share for share in shares]
    return [
        shaped(transform, score, weight) if weight else replace(score)
        for score, weight in zip(group, weights, strict=True)
    ]
