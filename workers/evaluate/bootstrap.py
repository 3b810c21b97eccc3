"""Means with intervals that respect tasks: whole tasks are drawn, since judgements of one task hang together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000


def mean_interval(
    values: Sequence[float], tasks: Sequence[str | None], *, level: float = 0.95, seed: int = 0
) -> tuple[float, list[float]]:
    """Mean of `values`, and its percentile bootstrap interval by task (cluster bootstrap). values: at least one."""
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks])
    sums = np.bincount(place, weights=np.asarray(values, dtype=float), minlength=len(names))
    counts = np.bincount(place, minlength=len(names)).astype(float)
    drawn: NDArray[np.float64] = (
        np.random.default_rng(seed)
        .multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
        .astype(float)
    )
    means = (drawn @ sums) / (drawn @ counts)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(np.mean(values)), [float(low), float(high)]
