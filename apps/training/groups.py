"""Training runs that differ only in their seed, as one row; and several runs side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any

from apps.core.jobs.job_queue import JobState
from apps.training.models import RewardModel, TrainingRun
from apps.training.recipes import toml
from apps.training.report_measures import Measure, measures


@dataclass
class SeedGroup:
    """runs: newest first, at least one."""

    runs: list[TrainingRun] = field(default_factory=list)

    @property
    def newest(self) -> TrainingRun:
        return self.runs[0]

    @property
    def numbers(self) -> str:
        """Keys of all its runs, for the comparison page."""
        return ",".join(str(run.pk) for run in self.runs)

    @property
    def made_models(self) -> list[RewardModel]:
        return [model for run in self.runs for model in run.made_models]

    @property
    def states(self) -> list[tuple[str, int]]:
        """The states of its runs, with the number of runs in each."""
        return [
            (state, count) for state in JobState if (count := sum(run.state == state for run in self.runs))
        ]

    @property
    def measured(self) -> "Spread | None":
        found = [(run, results[0]) for run in self.runs if (results := measures(run.report))]
        if not found:
            return None
        first = found[0][1]
        by_seed = {run.seed: result.value for run, result in reversed(found) if result.title == first.title}
        values = list(by_seed.values())  # a seed with several runs counts once
        return Spread(first, mean(values), min(values), max(values), len(values))


@dataclass(frozen=True, slots=True)
class Spread:
    """The first measure of several seeds. measure: that of the newest."""

    measure: Measure
    mean: float
    lowest: float
    highest: float
    seeds: int

    @property
    def shown_mean(self) -> str:
        return replace(self.measure, value=self.mean).shown_value

    @property
    def shown_range(self) -> str:
        return replace(self.measure, interval=(self.lowest, self.highest)).shown_interval


def by_seed(runs: Iterable[TrainingRun]) -> list[SeedGroup]:
    """In the order of the newest run of each."""
    found: dict[str, SeedGroup] = {}
    for run in runs:
        key = f"{run.dataset_version_id} {run.parent_id} {run.model_name} {toml(run.recipe)}"
        found.setdefault(key, SeedGroup()).runs.append(run)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of the recipes (or the dataset, or the seed) that differs between runs. values: in the order of runs."""

    key: str
    values: list[str]


def differences(runs: Sequence[TrainingRun]) -> list[Difference]:
    """In the order of a recipe."""
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
class MeasureRow:
    """A measure, and the result of each run; None where a run has no such measure."""

    measure: Measure
    values: list[Measure | None]


def side_by_side(runs: Sequence[TrainingRun]) -> list[MeasureRow]:
    """Every measure of any of the runs."""
    by_run = [{measure.title: measure for measure in measures(run.report)} for run in runs]
    titles = dict.fromkeys(title for results in by_run for title in results)
    rows = [[results.get(title) for results in by_run] for title in titles]
    return [MeasureRow(next(value for value in values if value is not None), values) for values in rows]
