"""Rewards that make a group's mean risk-averse: the mean of what comes out is the mean of the group less its risk.

Each is a function of one reward, once the group is known, so that it bounds what steps gather as other transforms do.
"""

import math
from collections.abc import Callable, Sequence

from workers.schema.transforms import Risk, ValueAtRisk


def variance_penalty(transform: Risk, rewards: Sequence[float]) -> Callable[[float], float]:
    """r - k (r - mean)^2, at most mean + 1 / (4 k); over the group, its mean is mean - k var.

    Tamar et al. (arXiv 1206.6404): the mean needs no gradient, since that of (r - mean)^2 in it is 0 on average.
    """
    mean = math.fsum(rewards) / len(rewards)
    return lambda reward: reward - transform.k * (reward - mean) * (reward - mean)


def tail(transform: ValueAtRisk, rewards: Sequence[float]) -> Callable[[float], float]:
    """q + min(r - q, 0) / alpha, at most q; over the group, its mean is the CVaR of its rewards.

    q: the smallest reward that a share of alpha of the group does not pass. Rockafellar and Uryasev (2000), theorem 1.
    """
    place = math.ceil(transform.alpha * len(rewards) - 1e-9) - 1
    quantile = sorted(rewards)[max(place, 0)]
    return lambda reward: quantile + min(reward - quantile, 0.0) / transform.alpha
