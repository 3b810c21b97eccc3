"""What harder selection by the reward does to the outcome: the gold reward against the KL divergence it costs.

Best of n is the cheapest policy optimised against a reward. Its divergence from the policy that wrote the trajectories
is at most log n - (n - 1) / n nats, and a reward that is not the goal is over-optimised where the outcome falls while
the reward still rises: Gao, Schulman and Hilton, "Scaling laws for reward model overoptimization" (arXiv 2210.10760),
sections 2.2 and 3.1.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import MIN_TASKS, difference_interval
from workers.evaluate.ranks import Numbers

_MOST = 64  # trajectories that are chosen from


def best_of_n_kl(n: int) -> float:
    """In nats; an upper limit, and exact where no two trajectories are alike (arXiv 2401.01879)."""
    return math.log(n) - (n - 1) / n


def chosen_value(rewards: Numbers, values: Numbers, n: int) -> float:
    """Mean value of the highest reward of n, over all sets of n. rewards, values: [runs of a task], at least n.

    With runs sorted by reward, run i (from 0) is the best of C(i, n - 1) sets of C(N, n) (the estimator of Chen et al.
    2021, section 2.1, for a ranking). Equal rewards share their places: each has the mean of their values.
    """
    order = np.argsort(rewards, kind="stable")
    _, place = np.unique(rewards, return_inverse=True)
    shared = np.bincount(place, weights=values) / np.bincount(place)
    return float(_shares(len(rewards), n) @ shared[place[order]])


@lru_cache(maxsize=256)  # tasks with as many runs have the same
def _shares(runs: int, n: int) -> Numbers:
    """[runs], of all sets of n, those whose best one is run i from below."""
    total = comb(runs, n)
    return np.array([comb(i, n - 1) / total for i in range(runs)])


def over_optimisation(rewards: Numbers, gold: Numbers, tasks: Sequence[str]) -> dict[str, Any] | None:
    """{points: [{n, kl, reward, gold, value}], n, peak, change, interval, tasks}; None where no task has two runs, or
    where rewards or outcomes do not vary within the tasks.

    rewards, gold: [runs]; gold in 0..1 or on any scale. points: all of the same tasks, those with the most runs so
    that MIN_TASKS are left if there are as many. reward, gold: gain over a random run, in standard deviations of runs
    about the mean of their task. value: gold on its scale. change: of gold from the best of `peak` to the best of `n`,
    the largest one, paired by task. The peak of each half of the tasks is measured on the other half, as the highest
    of many points is too high on its own data.
    """
    by_task: dict[str, list[int]] = defaultdict(list)
    for place, task in enumerate(tasks):
        by_task[task].append(place)
    counts = sorted(map(len, by_task.values()), reverse=True)
    most = min(_MOST, counts[min(MIN_TASKS, len(counts)) - 1])
    if most < 2:
        most = min(_MOST, counts[0])
    kept = {task: np.array(places) for task, places in by_task.items() if len(places) >= most}
    spreads = [_spread(numbers, list(kept.values())) for numbers in (rewards, gold)]
    if most < 2 or not all(spreads):
        return None
    sizes = range(1, most + 1)
    curves = [
        np.array([[chosen_value(rewards[runs], numbers[runs], n) for n in sizes] for runs in kept.values()])
        for numbers in (rewards, gold)
    ]
    (reward_gain, gold_gain) = (
        (curve - curve[:, :1]).mean(0) / spread for curve, spread in zip(curves, spreads, strict=True)
    )
    values = curves[1]
    return {
        "points": [
            {
                "n": n,
                "kl": best_of_n_kl(n),
                "reward": float(reward_gain[n - 1]),
                "gold": float(gold_gain[n - 1]),
                "value": float(values[:, n - 1].mean()),
            }
            for n in sizes
        ],
        "n": most,
        "peak": int(values.mean(0).argmax()) + 1,
        "tasks": len(kept),
        **_change(values, list(kept)),
    }


def _spread(numbers: Numbers, groups: Sequence[Any]) -> float:
    return float(np.concatenate([numbers[places] - numbers[places].mean() for places in groups]).std())


def _change(values: Numbers, names: Sequence[str]) -> dict[str, Any]:
    """values: [tasks, sizes]."""
    if len(values) < 2:
        return {"change": None, "interval": None}
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) / ((high - low) or 1.0)
    at_peak = np.zeros(len(values))
    for half in (0, 1):
        at_peak[1 - half :: 2] = scaled[1 - half :: 2, scaled[half::2].mean(0).argmax()]
    mean, between = difference_interval(scaled[:, -1].tolist(), at_peak.tolist(), names)
    return {"change": mean * (high - low), "interval": [end * (high - low) for end in between]}
