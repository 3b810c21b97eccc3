"""Runs of one recipe on one dataset that differ in nothing but their seed: one row, and several runs side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from apps.core.jobs.job_queue import JobState
from apps.training.models import TrainingRun
from apps.training.recipes import toml
from apps.training.report import Measure, measures


@dataclass
class Group:
    """runs: newest first, at least one."""

    runs: list[TrainingRun] = field(default_factory=list)

    @property
    def newest(self) -> TrainingRun:
        return self.runs[0]

    @property
    def numbers(self) -> str:
        """Of all its runs, as the page that compares takes them."""
        return ",".join(str(run.pk) for run in self.runs)

    @property
    def states(self) -> list[tuple[str, int]]:
        """Every state there is, with how many are in it."""
        return [
            (state, count) for state in JobState if (count := sum(run.state == state for run in self.runs))
        ]

    @property
    def measured(self) -> "Spread | None":
        found = [(run, each[0]) for run in self.runs if (each := measures(run.report))]
        if not found:
            return None
        first = found[0][1]
        by_seed = {run.seed: one.value for run, one in reversed(found) if one.title == first.title}
        values = list(by_seed.values())  # a seed that was run twice counts once
        return Spread(first, mean(values), min(values), max(values), len(values))


@dataclass(frozen=True, slots=True)
class Spread:
    """The first measure of several seeds. measure: that of the newest."""

    measure: Measure
    mean: float
    lowest: float
    highest: float
    seeds: int


def by_seed(runs: Iterable[TrainingRun]) -> list[Group]:
    """In the order of the newest run of each."""
    found: dict[str, Group] = {}
    for run in runs:
        key = f"{run.dataset_version_id} {run.parent_id} {run.model_name} {toml(run.recipe)}"
        found.setdefault(key, Group()).runs.append(run)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of the recipes (or the dataset, or the seed) that is not the same in all runs. values: as the runs."""

    key: str
    values: list[str]


def differences(runs: Sequence[TrainingRun]) -> list[Difference]:
    """What is not the same, in the order of a recipe."""
    columns: dict[str, list[Any]] = {
        "dataset": [f"{run.dataset_version.name}@{run.dataset_version.version}" for run in runs],
        "parent": [f"{run.parent.name}@{run.parent.version}" if run.parent else None for run in runs],
        "seed": [run.seed for run in runs],
    }
    for key in dict.fromkeys(key for run in runs for key in run.recipe):
        columns[key] = [run.recipe.get(key) for run in runs]
    shown = {key: [toml(value) for value in values] for key, values in columns.items()}
    return [Difference(key, values) for key, values in shown.items() if len(set(values)) > 1]


@dataclass(frozen=True, slots=True)
class Row:
    """A measure, and what each run reaches in it; None where a run has no such measure."""

    measure: Measure
    values: list[Measure | None]


def side_by_side(runs: Sequence[TrainingRun]) -> list[Row]:
    """Every measure that any of the runs has."""
    found = [{one.title: one for one in measures(run.report)} for run in runs]
    titles = dict.fromkeys(title for one in found for title in one)
    rows = [[one.get(title) for one in found] for title in titles]
    return [Row(next(one for one in values if one is not None), values) for values in rows]
