"""The trajectories of one task as a tree: shared steps are merged, and branches start at the first difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apps.trajectories.alignment import step_fingerprint
from apps.trajectories.outline import StepMark, step_marks
from workers.schema import Step


@dataclass(slots=True)
class Branch:
    """trajectories: primary keys of those that pass through it. steps: their shared steps, as marks of the first one.

    ended: primary keys of the trajectories that end here. branches: how the others continue, most common first.
    """

    trajectories: list[int]
    steps: list[StepMark]
    ended: list[int] = field(default_factory=list)
    branches: list["Branch"] = field(default_factory=list)


def build_tree(trajectories: Mapping[int, Sequence[Step]]) -> Branch:
    """trajectories: of one task, by primary key. Steps are equal if messages, actions and observations are equal."""
    prints = {key: [step_fingerprint(step) for step in steps] for key, steps in trajectories.items()}
    marks = {key: step_marks(steps) for key, steps in trajectories.items()}
    return _branch(list(trajectories), 0, prints, marks)


def _branch(
    keys: list[int], start: int, prints: Mapping[int, list[object]], marks: Mapping[int, list[StepMark]]
) -> Branch:
    end = start
    while (groups := _groups(keys, end, prints)) and len(groups) == 1 and len(groups[0]) == len(keys):
        end += 1
    continuing = {key for group in groups for key in group}
    return Branch(
        trajectories=keys,
        steps=[mark for mark in marks[keys[0]] if start <= mark.index < end],
        ended=[key for key in keys if key not in continuing],
        branches=[_branch(group, end, prints, marks) for group in groups],
    )


def _groups(keys: list[int], at: int, prints: Mapping[int, list[object]]) -> list[list[int]]:
    """Primary keys of the trajectories with a step at this index, grouped by equal step."""
    by_step: dict[object, list[int]] = {}
    for key in keys:
        if at < len(prints[key]):
            by_step.setdefault(prints[key][at], []).append(key)
    return sorted(by_step.values(), key=len, reverse=True)
