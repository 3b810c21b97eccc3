"""Runs of one task as a tree: what several do alike stands once, and branches where they part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apps.trajectories.alignment import fingerprint
from apps.trajectories.outline import Mark, marks_of
from workers.schema import Step


@dataclass(slots=True)
class Branch:
    """runs: keys of those that go through it. steps: what they do alike here, as marks of the first of them.

    ended: keys of the runs that end with it. branches: how the others go on, the most trodden first.
    """

    runs: list[int]
    steps: list[Mark]
    ended: list[int] = field(default_factory=list)
    branches: list["Branch"] = field(default_factory=list)


def tree_of(runs: Mapping[int, Sequence[Step]]) -> Branch:
    """runs: of one task, by key. Steps are alike where everything said, done and seen is."""
    prints = {key: [fingerprint(step) for step in steps] for key, steps in runs.items()}
    marks = {key: marks_of(steps) for key, steps in runs.items()}
    return _branch(list(runs), 0, prints, marks)


def _branch(
    keys: list[int], start: int, prints: Mapping[int, list[object]], marks: Mapping[int, list[Mark]]
) -> Branch:
    end = start
    while (groups := _groups(keys, end, prints)) and len(groups) == 1 and len(groups[0]) == len(keys):
        end += 1
    going_on = {key for group in groups for key in group}
    return Branch(
        runs=keys,
        steps=[mark for mark in marks[keys[0]] if start <= mark.index < end],
        ended=[key for key in keys if key not in going_on],
        branches=[_branch(group, end, prints, marks) for group in groups],
    )


def _groups(keys: list[int], at: int, prints: Mapping[int, list[object]]) -> list[list[int]]:
    """Keys of the runs that have a step there, those with an equal one together."""
    found: dict[object, list[int]] = {}
    for key in keys:
        if at < len(prints[key]):
            found.setdefault(prints[key][at], []).append(key)
    return sorted(found.values(), key=len, reverse=True)
