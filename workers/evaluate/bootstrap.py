"""Intervals that respect tasks: judgements of one task hang together, so that tasks are what is counted and drawn."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
MIN_TASKS = 10  # below, intervals are given, and no verdict follows from them
_WEIGHTS_AT_ONCE = 2**20
Numbers = NDArray[np.float64]


def task_count(tasks: Sequence[str | None]) -> int:
    return len(set(tasks))


def task_draws(tasks: Sequence[str | None], *, draws: int = DRAWS, seed: int = 0) -> Numbers:
    """[draws, n]: how often each judgement is drawn, all of a task equally often (cluster bootstrap)."""
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks], dtype=int)
    dice = np.random.default_rng(seed)
    drawn = dice.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    return drawn.astype(float)[:, place]


def interval(values: Numbers, tasks: int | None = None, *, level: float = 0.95) -> list[float] | None:
    """Percentiles of what was drawn; draws without a value are left out. None if there is no other.

    tasks: the number that was drawn from; the percentiles are then those of the expanded percentile interval, whose
    width allows for few of them (Hesterberg 2015, section 4.1), and there is none for a single task, or where
    nothing varies from draw to draw.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    tail = (1 - level) / 2
    if tasks is not None:
        if tasks < 2 or np.ptp(known) == 0:
            return None
        tail = NormalDist().cdf(-math.sqrt(tasks / (tasks - 1)) * t_quantile(tasks - 1, level))
    low, high = np.quantile(known, [tail, 1 - tail])
    return [float(low), float(high)]


def mean_interval(
    values: Sequence[float], tasks: Sequence[str | None], *, level: float = 0.95
) -> tuple[float, list[float]]:
    """Mean of `values` in 0..1, at least one, and its interval by task.

    Wilson's interval (1927) with the effective sample size p (1 - p) / se^2 and t in the place of z, as Dean and Pagano
    (2015, Stat. Meth. Med. Res. 24) recommend for clustered shares, at most the number of values; se and degrees of
    freedom: see `_cluster_error`. Where nothing varies, as at 0 and 1, every task counts as one judgement. [0, 1] for
    fewer than two effective tasks.
    """
    mean, error, effective_tasks = _cluster_error(values, tasks)
    if effective_tasks < 2:
        return mean, [0.0, 1.0]
    size = min(mean * (1 - mean) / error**2, len(values)) if error else effective_tasks
    quantile = t_quantile(max(1, round(effective_tasks) - 1), level)
    factor = quantile**2 / size
    centre = (mean + factor / 2) / (1 + factor)
    half = quantile / (1 + factor) * math.sqrt(mean * (1 - mean) / size + factor / (4 * size))
    return mean, [max(0.0, centre - half), min(1.0, centre + half)]


def difference_interval(
    first: Sequence[float], second: Sequence[float], tasks: Sequence[str | None], *, level: float = 0.95
) -> tuple[float, list[float]]:
    """Mean of first - second, paired values in 0..1, and its interval by task: cluster-robust t.

    Where all pairs differ by the same amount, which may be none, nothing varies: the interval is Agresti and Min's for
    paired shares (2005, half a judgement more in each of four cells) with every task as one judgement. [-1, 1] for
    fewer than two effective tasks.
    """
    mean, error, effective_tasks = _cluster_error(np.subtract(first, second), tasks)
    if effective_tasks < 2:
        return mean, [-1.0, 1.0]
    centre = mean
    if not error:
        size = effective_tasks + 2
        centre = mean * effective_tasks / size
        differing = abs(mean) * effective_tasks
        error = math.sqrt(differing + 1 - (mean * effective_tasks) ** 2 / size) / size
    half = t_quantile(max(1, round(effective_tasks) - 1), level) * error
    return mean, [max(-1.0, centre - half), min(1.0, centre + half)]


def statistic_interval(
    statistic: Callable[[NDArray[np.int64]], float | None],
    tasks: Sequence[str | None],
    *,
    draws: int = 500,
    seed: int = 0,
) -> list[float] | None:
    """Of any statistic of the judgements at the given places, drawn by task: see `interval`."""
    by_task: dict[str | None, list[int]] = {}
    for place, task in enumerate(tasks):
        by_task.setdefault(task, []).append(place)
    groups = [np.array(places) for places in by_task.values()]
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        chosen = dice.integers(len(groups), size=len(groups))
        found.append(statistic(np.concatenate([groups[index] for index in chosen])))
    return interval(np.array([np.nan if value is None else value for value in found]), len(groups))


def weighted_interval(
    statistic: Callable[[Numbers], Numbers], tasks: Sequence[str | None], *, draws: int = 500, seed: int = 0
) -> list[float] | None:
    """As `statistic_interval`, with the same draws, of a statistic of many draws at once.

    statistic: weights [draws, n], how often each judgement counts, to its value in each draw, NaN where it has none.
    """
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks])
    generator = np.random.default_rng(seed)
    counts = np.stack(
        [
            np.bincount(generator.integers(len(names), size=len(names)), minlength=len(names))
            for _ in range(draws)
        ]
    ).astype(float)
    batch = max(1, _WEIGHTS_AT_ONCE // len(place))
    found = [statistic(counts[start : start + batch, place]) for start in range(0, draws, batch)]
    return interval(np.concatenate(found), len(names))


def _cluster_error(
    values: Sequence[float] | Numbers, tasks: Sequence[str | None]
) -> tuple[float, float, float]:
    """Mean, its standard error, and the effective number of tasks, (sum n)^2 / sum n^2, whose degrees of freedom are
    one less (Carter, Schnepel and Steigerwald 2017).

    The error is cluster-robust with the correction CR2 (Bell and McCaffrey 2002): for a mean, the squared sum of the
    residuals of a task over 1 - its share of all judgements. It is at least that of independent values: where residuals
    cancel inside tasks, tasks do not make the mean more certain. 0 only where all values are equal.
    """
    names = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([names[task] for task in tasks])
    numbers = np.asarray(values, dtype=float)
    counts = np.bincount(place, minlength=len(names)).astype(float)
    mean = float(numbers.mean())
    effective = float(counts.sum() ** 2 / (counts**2).sum())
    if len(names) < 2:
        return mean, math.inf, effective
    residuals = np.bincount(place, weights=numbers - mean, minlength=len(names))
    if np.abs(numbers - mean).max() < 1e-9:
        return mean, 0.0, effective
    shares = counts / counts.sum()
    clustered = np.sqrt((residuals**2 / (1 - shares)).sum()) / len(numbers)
    independent = numbers.std(ddof=1) / math.sqrt(len(numbers))
    return mean, float(max(clustered, independent)), effective


@cache
def t_quantile(freedom: int, level: float = 0.95) -> float:
    """The t that Student's distribution is within -t..t of with probability `level`."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < level else (low, middle)
    return high


def _t_within(t: float, freedom: int) -> float:
    """P(|T| < t), exact for whole degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    if freedom % 2:
        term, total = math.cos(angle), 0.0
        for k in range(1, (freedom - 1) // 2 + 1):
            total += term
            term *= square * 2 * k / (2 * k + 1)
        return 2 / math.pi * (angle + math.sin(angle) * total)
    term, total = 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= square * (2 * k - 1) / (2 * k)
    return math.sin(angle) * total
