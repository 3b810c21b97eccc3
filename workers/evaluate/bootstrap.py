"""Means with intervals that respect tasks: whole tasks are drawn, since judgements of one task hang together."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
Numbers = NDArray[np.float64]


def task_draws(tasks: Sequence[str | None], *, draws: int = DRAWS, seed: int = 0) -> Numbers:
    """[draws, n]: how often each judgement is drawn, all of a task equally often (cluster bootstrap)."""
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks], dtype=int)
    return _drawn(len(names), draws, seed)[:, place]


def interval(values: Numbers, level: float = 0.95) -> list[float] | None:
    """Percentiles of what was drawn; draws without a value are left out. None if there is no other."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]


def mean_interval(
    values: Sequence[float], tasks: Sequence[str | None], *, level: float = 0.95, seed: int = 0
) -> tuple[float, list[float]]:
    """Mean of `values`, and its percentile bootstrap interval by task. values: at least one."""
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks])
    sums = np.bincount(place, weights=np.asarray(values, dtype=float), minlength=len(names))
    counts = np.bincount(place, minlength=len(names)).astype(float)
    drawn = _drawn(len(names), DRAWS, seed)
    found = interval((drawn @ sums) / (drawn @ counts), level)
    assert found is not None  # every task has judgements
    return float(np.mean(values)), found


def statistic_interval(
    statistic: Callable[[NDArray[np.int64]], float | None],
    tasks: Sequence[str | None],
    *,
    draws: int = 500,
    seed: int = 0,
) -> list[float] | None:
    """Of any statistic of the judgements at the given places, drawn by task."""
    by_task: dict[str | None, list[int]] = {}
    for place, task in enumerate(tasks):
        by_task.setdefault(task, []).append(place)
    groups = [np.array(places) for places in by_task.values()]
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        chosen = dice.integers(len(groups), size=len(groups))
        found.append(statistic(np.concatenate([groups[index] for index in chosen])))
    return interval(np.array([np.nan if value is None else value for value in found]))


def _drawn(tasks: int, draws: int, seed: int) -> Numbers:
    return np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), size=draws).astype(float)
