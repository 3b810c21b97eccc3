"""What the steps of a trajectory of numbers are on average: what the regression on numbers reads."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.text import Numbers
from workers.text.number_sets import NumberLayout, SetNumbers, SetRenderer
from workers.text.rendered import Renderer

Floats = NDArray[np.float64]
_Rows = Sequence[tuple[float, ...]]


def moments(renderer: Renderer, numbers: Numbers) -> list[Floats]:
    """Means over the steps of all agents: of the numbers; of their sizes; of their squares. Each is read with those
    before it.

    Of sets and teams also of the lengths of two numbers next to each other; and, over the steps, the means of the least
    and of the greatest of all these, of a set over its rows, of a team over the latest step of each agent.
    """
    if not (isinstance(renderer, SetRenderer) and isinstance(numbers, SetNumbers)):
        table = np.array(numbers.rows)
        return [np.append(np.log1p(len(table)), table.mean(0)), np.abs(table).mean(0), (table**2).mean(0)]
    kinds = [_of_kind(length, rows, groups) for length, rows, groups in _kinds(renderer.layout, numbers)]
    return [np.concatenate(parts) for parts in zip(*kinds, strict=True)]


def _kinds(layout: NumberLayout, numbers: SetNumbers) -> Iterable[tuple[int, _Rows, list[_Rows]]]:
    """Of each kind of rows: how long they are; all of them; and, by step, those that there are together."""
    together = _latest(numbers)
    for length in layout.lengths:
        groups: list[_Rows] = []
        if layout.is_team:
            groups = [[row for row in rows if len(row) == length] for rows in together]
        yield length, [row for row in numbers.rows if len(row) == length], groups
    for place, (_, length) in enumerate(layout.sets):
        sets: list[_Rows] = [step[place] for step in numbers.sets]
        yield length, [row for rows in sets for row in rows], sets


def _latest(numbers: SetNumbers) -> list[_Rows]:
    """At each step, the latest row of each agent so far."""
    latest: dict[int, tuple[float, ...]] = {}
    found: list[_Rows] = []
    for agent, row in zip(numbers.agents, numbers.rows, strict=True):
        latest[agent] = row
        found.append(list(latest.values()))
    return found


def _of_kind(length: int, rows: _Rows, groups: Sequence[_Rows]) -> list[Floats]:
    """As `moments`; zeros where there are no rows."""
    averages = _read(length, rows or [(0.0,) * length]).mean(0)
    means, sizes, squares, lengths = np.split(averages, [length, 2 * length, 3 * length])
    tables = [_read(length, group) for group in groups if group]
    extremes = np.zeros(2 * len(averages) if groups else 0)
    if tables:
        extremes = np.mean([np.concatenate([table.min(0), table.max(0)]) for table in tables], axis=0)
    return [np.append(np.log1p(len(rows)), means), sizes, squares, lengths, extremes]


def _read(length: int, rows: _Rows) -> Floats:
    """[rows, inputs]: numbers, sizes, squares, lengths."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), length)
    return np.concatenate([table, np.abs(table), table**2, np.hypot(table[:, 1:], table[:, :-1])], 1)
