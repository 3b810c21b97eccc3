"""Does an uncertainty tell where a reward model errs: `python -m benchmarks.uncertainty [--json] [--quick]`.

Four uncertainties of the same held-out comparisons, and Spearman's rank correlation of each with the error of the model
(1 wrong, 1/2 equal, 0 right), with intervals by task; and the difference from the spread of the heads, which is `std`.

`heads`: the spread of five heads on one backbone, each on its own bootstrap sample: the root of the summed variances.
`apart`: the same of five models trained apart, with features of their own (deep ensembles, Lakshminarayanan et al.
2017, arXiv 1612.01474).
`laplace`: the standard deviation of the difference under a Laplace approximation of the last layer (Daxberger et al.
2021, arXiv 2106.14806), the prior's precision by MacKay's fixed point (1992).
`margin`: less of it is less certain. A temperature divides all margins by one number, and so changes no rank: this is
temperature scaling. It is of a comparison, and says nothing of a single input, as `std` does.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks import sample_world
from benchmarks.output import put_out
from benchmarks.public_data import data_folder, hh, tau_bench
from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate.bootstrap import statistic_interval
from workers.evaluate.preference import correctness
from workers.evaluate.ranks import spearman
from workers.models import RewardModel, build
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.reward_statistics import score_rendered

Numbers = NDArray[np.float64]
MEASURES = ("heads", "apart", "laplace", "margin")
_MODELS, _FOLDS, _SEEDS, _HH_PAIRS = 5, 3, 3, 600
_CACHE_BYTES = 1024**3
_MACKAY_ROUNDS = 20
_SURE = 0.03  # of two hidden rewards of the sample world, as in `sample_world`


@dataclass(frozen=True)
class Comparison:
    """better, worse: by the truth."""

    better: Trajectory
    worse: Trajectory


@dataclass(frozen=True)
class Measured:
    """Of comparisons, [n] each: the error, and by name the uncertainties. tasks: of them."""

    error: Numbers
    uncertainty: dict[str, Numbers]
    tasks: list[str]


class Trainings:
    """Of models that share a frozen encoder and what it computed."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.like = build(Recipe())
        self.cache = self.like.backbone.new_cache(_CACHE_BYTES)

    def measure(
        self, records: Sequence[PreferenceRecord], held_out: Sequence[Comparison], seed: int
    ) -> Measured:
        """Train on the records; uncertainties and errors of what is held out."""
        started = time.monotonic()
        model = self._trained(records, seed, ensemble=5)
        count = 2 if self.quick else _MODELS
        apart = [self._trained(records, 1000 * (seed + 1) + number, ensemble=1) for number in range(count)]
        sides = [comparison.better for comparison in held_out], [comparison.worse for comparison in held_out]
        heads = [self._rewards(model, side) for side in sides]
        separate = [np.stack([self._rewards(other, side)[:, 0] for other in apart], axis=1) for side in sides]
        margin = (heads[0] - heads[1]).mean(1)
        strict = [record for record in records if record.choice in ("a", "b")]
        found = Measured(
            np.array([1 - correctness(value) for value in margin.tolist()]),
            {
                "heads": np.sqrt(heads[0].var(1) + heads[1].var(1)),
                "apart": np.sqrt(separate[0].var(1) + separate[1].var(1)),
                "laplace": self._laplace(model, strict, held_out),
                "margin": -np.abs(margin),
            },
            [comparison.better.task.id for comparison in held_out],
        )
        seconds = round(time.monotonic() - started)
        sys.stderr.write(f"{len(records)} to train on, {len(held_out)} held out ({seconds} s)\n")
        return found

    def _trained(self, records: Sequence[PreferenceRecord], seed: int, *, ensemble: int) -> RewardModel:
        recipe = parse_recipe({"ensemble": ensemble} | ({"epochs": 2} if self.quick else {}))
        folds = CrossValidation(
            recipe, seed, choose_device("auto"), lambda **_: None, cache=self.cache, like=self.like
        )
        return folds.train(records)[1].model

    @torch.no_grad()
    def _rewards(self, model: RewardModel, trajectories: Sequence[Trajectory]) -> Numbers:
        """[trajectories, heads]"""
        rewards: Numbers = model.heads.scalar(self._ends(model, trajectories)).squeeze(-1).double().numpy()
        return rewards

    def _ends(self, model: RewardModel, trajectories: Sequence[Trajectory]) -> torch.Tensor:
        """[trajectories, width]: the states that rewards of `value` are read off."""
        renderer = model.backbone.renderer
        return score_rendered(model, [renderer.render(run) for run in trajectories], cache=self.cache).ends

    @torch.no_grad()
    def _laplace(
        self, model: RewardModel, strict: Sequence[PreferenceRecord], held_out: Sequence[Comparison]
    ) -> Numbers:
        """[held_out]: the root of the mean over heads of the variance of the difference."""

        def differences(first: Sequence[Trajectory], second: Sequence[Trajectory]) -> torch.Tensor:
            return _inner(model, self._ends(model, first)) - _inner(model, self._ends(model, second))

        training = differences([record.a for record in strict], [record.b for record in strict]).double()
        wanted = differences([each.better for each in held_out], [each.worse for each in held_out]).double()
        weights = model.heads.scalar.second.double().squeeze(-1)  # [heads, inner]
        variances = [
            _variance(training[:, head], wanted[:, head], weights[head]) for head in range(len(weights))
        ]
        return np.sqrt(np.mean(variances, axis=0))


def _inner(model: RewardModel, ends: torch.Tensor) -> torch.Tensor:
    """[n, heads, inner]: what the last layer of each head reads."""
    heads = model.heads.scalar
    return functional.gelu(torch.einsum("nw,kwi->nki", heads.norm(ends), heads.first) + heads.bias)


def _variance(training: torch.Tensor, wanted: torch.Tensor, weights: torch.Tensor) -> Numbers:
    """[wanted]: x' (sum p (1 - p) x x' + precision I)^-1 x. training, wanted: [n, inner], differences of features."""
    p = torch.sigmoid(training @ weights)
    information = (training * (p * (1 - p)).unsqueeze(1)).T @ training
    values, vectors = torch.linalg.eigh(information)
    precision = 1.0
    for _ in range(_MACKAY_ROUNDS):
        used = float((values / (values + precision)).sum())
        precision = max(used, 1e-6) / max(float(weights @ weights), 1e-9)
    variance: Numbers = ((wanted @ vectors).square() / (values + precision)).sum(1).numpy()
    return variance


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
        found.append(trainings.measure(rest, held_out, seed))
    return found


def measure_sample_world(trainings: Trainings) -> list[Measured]:
    """Against the hidden reward, on held-out tasks; a task of several seeds is one."""
    found = []
    for seed in range(1 if trainings.quick else _SEEDS):
        tasks = 15 if trainings.quick else len(sample_world.TASKS)
        of = sample_world.sample(seed, tasks=tasks, per_task=4 if trainings.quick else sample_world.PER_TASK)
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
        found.append(trainings.measure(records, held_out, seed))
    return found


def summary(parts: Sequence[Measured]) -> dict[str, Any]:
    """By measure, {spearman, interval, difference, difference_interval}: of all parts together, ranked within each."""
    tasks = [task for part in parts for task in part.tasks]
    error = np.concatenate([part.error for part in parts])
    ranks = {
        name: np.concatenate([_shares(part.uncertainty[name]) for part in parts])
        for name in parts[0].uncertainty
    }

    def correlation(name: str, places: NDArray[np.int64]) -> float | None:
        return spearman(ranks[name][places], error[places])

    def difference(name: str, places: NDArray[np.int64]) -> float | None:
        own, heads = correlation(name, places), correlation("heads", places)
        return None if own is None or heads is None else own - heads

    everything = np.arange(len(error))
    return {
        "comparisons": len(error),
        "tasks": len(set(tasks)),
        "errors": float(error.mean()),
        "measures": {
            name: {
                "spearman": correlation(name, everything),
                "interval": statistic_interval(lambda places, name=name: correlation(name, places), tasks),
                "difference": difference(name, everything),
                "difference_interval": statistic_interval(
                    lambda places, name=name: difference(name, places), tasks
                ),
            }
            for name in ranks
        },
    }


def _shares(values: Numbers) -> Numbers:
    """Ranks in 0..1: models of other folds have other scales."""
    found: Numbers = values.argsort().argsort() / max(1, len(values) - 1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uncertainty", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few records, two epochs: does it run?")
    parser.add_argument("--only", choices=("sample_world", "hh", "tau_bench"), nargs="*")
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    wanted = arguments.only or ("sample_world", "hh", "tau_bench")
    trainings, found = Trainings(quick=arguments.quick), {}
    try:
        for name in wanted:
            if name == "sample_world":
                found[name] = summary(measure_sample_world(trainings))
            else:
                records = list(hh(data_folder()))[:_HH_PAIRS] if name == "hh" else [*tau_bench(data_folder())]
                found[name] = summary(
                    measure_records(trainings, records[:40] if arguments.quick else records)
                )
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    put_out(found, _lines(found), arguments)
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [
        "| data | comparisons, tasks | " + " | ".join(MEASURES) + " |",
        "|---|---|" + "---|" * len(MEASURES),
    ]
    for name, row in found.items():
        cells = [_cell(row["measures"][measure], measure) for measure in MEASURES]
        lines.append(f"| {name} | {row['comparisons']:,}, {row['tasks']} | {' | '.join(cells)} |")
    return lines


def _cell(row: dict[str, Any], measure: str) -> str:
    own = f"{row['spearman']:+.2f} {_interval(row['interval'])}"
    if measure == "heads":
        return own
    return f"{own}; {row['difference']:+.2f} {_interval(row['difference_interval'])}"


def _interval(bounds: Sequence[float] | None) -> str:
    return "(no interval)" if bounds is None else f"[{bounds[0]:.2f}, {bounds[1]:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
