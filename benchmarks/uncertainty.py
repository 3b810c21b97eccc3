"""Does an uncertainty tell where a reward model errs: `python -m benchmarks.uncertainty [--json] [--quick]`.

Uncertainties of the same held-out comparisons, and Spearman's rank correlation of each with the error of its model (1
wrong, 1/2 equal, 0 right), with intervals by task; the difference from the spread of the heads, which is `std`; and how
much more accurate the model is with `pessimism`, that is, by reward - std.

`heads`: the spread of five heads on one backbone, each on its own bootstrap sample: the root of the summed variances.
`apart`: the same of five models trained apart, with features of their own (deep ensembles, Lakshminarayanan et al.
2017, arXiv 1612.01474).
`laplace`: the standard deviation of the difference under a Laplace approximation of the last layer (Daxberger et al.
2021, arXiv 2106.14806), the prior's precision by MacKay's fixed point (1992).
`margin`: less of it is less certain. A temperature divides all margins by one number, and so changes no rank: this is
temperature scaling. It is of a comparison, and says nothing of a single input, as `std` does.
`linear`, `hybrid`: `std` of the models with these backbones, whose heads are drawn from the Laplace approximation of
all weights that are fitted.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from apps.demo.world import TASKS
from benchmarks.output import put_out
from benchmarks.public_data import data_folder, hh, tau_bench
from benchmarks.sample_world_data import PER_TASK, sample
from benchmarks.uncertainty_models import Comparison, Judged, Numbers, Trainings
from workers.errors import RewardError
from workers.evaluate.bootstrap import difference_interval, statistic_interval
from workers.evaluate.preference import correctness
from workers.evaluate.ranks import spearman
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation

MEASURES = ("heads", "apart", "laplace", "margin", "linear", "hybrid")
_FOLDS, _SEEDS = 3, 3
_SURE = 0.03  # of two hidden rewards of the sample world, as in `sample_world`


@dataclass(frozen=True)
class Measured:
    """Of one training. tasks: of the held-out comparisons."""

    judged: dict[str, Judged]
    tasks: list[str]


def measure_records(
    trainings: Trainings, records: Sequence[PreferenceRecord], seed: int = 0
) -> list[Measured]:
    """By cross-validation over tasks."""
    folds = 2 if trainings.quick else _FOLDS
    splitter = CrossValidation(parse_recipe({}), seed, torch.device("cpu"), lambda **_: None)
    found = []
    for fold in range(folds):
        rest = [record for record in records if splitter.fold_of(record, folds, 0) != fold]
        held_out = [
            Comparison(record.a, record.b) if record.choice == "a" else Comparison(record.b, record.a)
            for record in records
            if splitter.fold_of(record, folds, 0) == fold
        ]
        found.append(_measured(trainings, rest, held_out, seed))
    return found


def measure_sample_world(trainings: Trainings) -> list[Measured]:
    """Against the hidden reward, on held-out tasks; a task of several seeds is one."""
    found = []
    for seed in range(1 if trainings.quick else _SEEDS):
        tasks = 15 if trainings.quick else len(TASKS)
        of = sample(seed, tasks=tasks, per_task=4 if trainings.quick else PER_TASK)
        by_task: dict[str, list[Trajectory]] = {}
        for name in of.held_out:
            by_task.setdefault(of.trajectories[name].task.id, []).append(of.trajectories[name])
        held_out = [
            Comparison(a, b) if of.reward(a) > of.reward(b) else Comparison(b, a)
            for runs in by_task.values()
            for a, b in combinations(runs, 2)
            if abs(of.reward(a) - of.reward(b)) >= _SURE
        ]
        records = [record for record in of.records if isinstance(record, PreferenceRecord)]
        found.append(_measured(trainings, records, held_out, seed))
    return found


def _measured(
    trainings: Trainings, records: Sequence[PreferenceRecord], held_out: Sequence[Comparison], seed: int
) -> Measured:
    tasks = [comparison.better.task.id for comparison in held_out]
    return Measured(trainings.judge(records, held_out, seed), tasks)


def summary(parts: Sequence[Measured]) -> dict[str, Any]:
    """{comparisons, tasks, measures: by measure, see `_measure_summary`}, of all parts together."""
    tasks = [task for part in parts for task in part.tasks]
    error = {
        name: np.concatenate([_errors(part.judged[name].margin) for part in parts])
        for name in parts[0].judged
    }
    ranks = {
        name: np.concatenate([_shares(part.judged[name].uncertainty) for part in parts])
        for name in parts[0].judged
    }

    def correlation(name: str, places: NDArray[np.int64]) -> float | None:
        return spearman(ranks[name][places], error[name][places])

    def difference(name: str, places: NDArray[np.int64]) -> float | None:
        own, heads = correlation(name, places), correlation("heads", places)
        return None if own is None or heads is None else own - heads

    everything = np.arange(len(tasks))
    return {
        "comparisons": len(tasks),
        "tasks": len(set(tasks)),
        "measures": {
            name: {
                "accuracy": float(1 - error[name].mean()),
                "spearman": correlation(name, everything),
                "interval": statistic_interval(lambda places, name=name: correlation(name, places), tasks),
                "difference": difference(name, everything),
                "difference_interval": statistic_interval(
                    lambda places, name=name: difference(name, places), tasks
                ),
                "pessimism": _pessimism_gain([part.judged[name] for part in parts], tasks),
            }
            for name in ranks
        },
    }


def _pessimism_gain(parts: Sequence[Judged], tasks: Sequence[str]) -> dict[str, Any] | None:
    """{difference, interval}: of the accuracy by reward - std, less that by the reward. None without a `std`."""
    if any(part.excess is None for part in parts):
        return None
    with_it = [1 - _errors(part.margin - part.excess) for part in parts if part.excess is not None]
    without = [1 - _errors(part.margin) for part in parts]
    found, interval = difference_interval(
        np.concatenate(with_it).tolist(), np.concatenate(without).tolist(), list(tasks)
    )
    return {"difference": found, "interval": interval}


def _errors(margin: Numbers) -> Numbers:
    return np.array([1 - correctness(value) for value in margin.tolist()])


def _shares(values: Numbers) -> Numbers:
    """Ranks in 0..1: models of other folds have other scales."""
    found: Numbers = values.argsort().argsort() / max(1, len(values) - 1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uncertainty", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few records, two epochs: does it run?")
    parser.add_argument("--only", choices=("tau_bench", "hh", "sample_world"), nargs="*")
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    wanted = arguments.only or ("tau_bench", "hh", "sample_world")
    trainings, found = Trainings(quick=arguments.quick), {}
    try:
        for name in wanted:
            if name == "sample_world":
                found[name] = summary(measure_sample_world(trainings))
            else:
                records = [*(hh if name == "hh" else tau_bench)(data_folder())]
                records = records[:40] if arguments.quick else records
                found[name] = summary(measure_records(trainings, records))
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    put_out(found, [*_lines(found)], arguments)
    return 0


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """A table for each data set."""
    for name, row in found.items():
        yield f"{name}: {row['comparisons']:,} comparisons, {row['tasks']:,} tasks"
        yield "| uncertainty | accuracy, % | correlation with the error | less that of the heads | pessimism, points |"
        yield "|---|---|---|---|---|"
        for measure in MEASURES:
            yield f"| {measure} | {' | '.join(_cells(row['measures'][measure], measure))} |"
        yield ""


def _cells(row: dict[str, Any], measure: str) -> Iterator[str]:
    yield f"{100 * row['accuracy']:.1f}"
    yield f"{row['spearman']:+.2f} {_interval(row['interval'])}"
    yield "" if measure == "heads" else f"{row['difference']:+.2f} {_interval(row['difference_interval'])}"
    gain = row["pessimism"]
    if gain is None:
        yield ""
    else:
        low, high = (100 * bound for bound in gain["interval"])
        yield f"{100 * gain['difference']:+.1f} [{low:.1f}, {high:.1f}]"


def _interval(bounds: Sequence[float] | None) -> str:
    return "(no interval)" if bounds is None else f"[{bounds[0]:.2f}, {bounds[1]:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
