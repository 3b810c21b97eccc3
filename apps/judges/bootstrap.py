"""Krippendorff's alpha of two raters, and bootstrap intervals over tasks."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
_MIN_TASKS = 5
Floats = NDArray[np.float64]


def krippendorff_alpha(a: Floats, b: Floats) -> float | None:
    """Alpha on an interval scale: 1 - observed / expected squared difference (Krippendorff 2011).

    a, b: [units]. None without units, or where all values are equal and alpha is undefined.
    """
    if len(a) == 0:
        return None
    expected = 2 * np.concatenate([a, b]).var(ddof=1)
    if expected < 1e-12:
        return None
    return float(1 - ((a - b) ** 2).mean() / expected)


def bootstrap_rows(tasks: Sequence[int]) -> Iterable[NDArray[np.int64]]:
    """Rows of tasks drawn with replacement, RESAMPLES times, with a fixed seed. tasks: of each row."""
    rows_by_task: dict[int, list[int]] = defaultdict(list)
    for row, task in enumerate(tasks):
        rows_by_task[task].append(row)
    groups = [np.array(rows) for rows in rows_by_task.values()]
    random = np.random.default_rng(0)
    if len(groups) < 2:
        return
    for _ in range(RESAMPLES):
        yield np.concatenate([groups[number] for number in random.integers(0, len(groups), len(groups))])


def bootstrap_interval(values: Sequence[float], tasks: int) -> tuple[float, float] | None:
    """The 95 % interval of resampled values; None where there are too few tasks."""
    if tasks < _MIN_TASKS or len(values) < RESAMPLES // 2:
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
