"""The signed geometric mean of components."""

import math
from collections.abc import Sequence
from itertools import pairwise

from workers.engine.item_score import ItemScore
from workers.schema.transforms import GeometricMean


def signed_geometric_mean(values: Sequence[float]) -> float:
    """(|v_1| ... |v_n|) ** (1 / n), below zero where a value is: at most the largest size, 0 where one is 0.

    Lucy-SKG (Moschopoulos et al., arXiv 2305.15801), Kinesthetic Reward Combination.
    """
    sizes = [abs(value) for value in values]
    if not all(sizes):
        return 0.0
    # Of the logarithms: a product of many values overflows. Rounding must not pass the largest.
    mean = min(math.exp(math.fsum(map(math.log, sizes)) / len(sizes)), max(sizes))
    return mean if all(value > 0 for value in values) else -mean


def apply(transform: GeometricMean, score: ItemScore) -> ItemScore:
    """In place of the weighted sum. What has gathered after a step is its change since the start."""
    paths = [score.potentials[name] for name in transform.components]
    means = [signed_geometric_mean(values) for values in zip(*paths, strict=True)]
    return score.with_gains([after - before for before, after in pairwise(means)], reward=means[-1])
