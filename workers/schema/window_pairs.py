"""Comparisons of windows of trajectories, made of labels of their steps: what a ranking of windows is learnt from.

As ONI learns its ranking from labels of observations (https://arxiv.org/abs/2410.23022): of two windows of a task the
one with the better label is preferred. A window is what precedes the first agent step, and a few agent steps in a row
with what follows them, as a trajectory.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from msgspec.structs import replace

from workers.schema.records import DERIVED_FROM, PreferenceRecord, Trajectory

MOST_WINDOWS = 64  # distinct ones of a task
MOST_PAIRS = 50  # of a task
DIFFERENCE = 0.5  # of values from -1 to 1: closer windows are not compared
STRONG = 1.5  # from this difference on a window is "better" rather than "slightly better"


def windows_of(run: Trajectory, size: int) -> list[tuple[int, int]]:
    """[start, end) among all steps, of so many agent steps each and what follows them; without what precedes the first
    agent step."""
    starts = [index for index, step in enumerate(run.steps) if step.source == "agent"][::size]
    return list(pairwise([*starts, len(run.steps)])) if starts else []


def window_trajectories(run: Trajectory, size: int) -> list[Trajectory]:
    """Without the outcome, which is not the window's."""
    places = windows_of(run, size)
    opening = run.steps[: places[0][0]] if places else ()
    metadata = run.metadata | {DERIVED_FROM: run.content_hash}
    return [
        replace(
            run,
            id=None,
            steps=(*opening, *run.steps[start:end]),
            reward=None,
            success=None,
            metadata=metadata,
        )
        for start, end in places
    ]


def window_pairs(
    labelled: Iterable[tuple[Trajectory, Sequence[float]]], *, size: int, annotator: str
) -> Iterator[PreferenceRecord]:
    """labelled: trajectories of one task, with a value of each agent step, -1 to 1; a window has that of its first.
    Windows that read the same count once, with their mean. Which pairs are taken depends on the windows alone.
    """
    values: dict[str, list[float]] = {}
    windows: dict[str, Trajectory] = {}
    for run, of_steps in labelled:
        for window, value in zip(window_trajectories(run, size), of_steps[::size], strict=True):
            key = window.content_hash
            windows[key] = min(windows.get(key, window), window, key=_source)  # whatever the order
            values.setdefault(key, []).append(value)
    means = {key: sum(found) / len(found) for key, found in values.items()}
    kept = sorted(means)[:MOST_WINDOWS]
    pairs = [pair for pair in combinations(kept, 2) if abs(means[pair[0]] - means[pair[1]]) >= DIFFERENCE]
    for pair in sorted(pairs, key=_digest)[:MOST_PAIRS]:
        yield _comparison(pair, means, windows, annotator)


def _comparison(
    pair: tuple[str, str], means: Mapping[str, float], windows: Mapping[str, Trajectory], annotator: str
) -> PreferenceRecord:
    difference = means[pair[0]] - means[pair[1]]
    return PreferenceRecord(
        a=windows[pair[0]],
        b=windows[pair[1]],
        choice="a" if difference > 0 else "b",
        strength=2 if abs(difference) >= STRONG else 1,
        annotator=annotator,
        origin="judge",
        item=f"windows {_digest(pair)[:16]}",
    )


def _source(window: Trajectory) -> str:
    return str(window.metadata[DERIVED_FROM])


def _digest(pair: tuple[str, str]) -> str:
    return hashlib.sha256("/".join(pair).encode()).hexdigest()
