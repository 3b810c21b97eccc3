"""Those of the checks that train small models, mostly on numeric trajectories of a known reward."""

import statistics
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from apps.datasets.strict_reliability import StrictReliability
from benchmarks.statistical_simulations import Check
from workers.engine.version_checks import learnt_from_comparisons
from workers.evaluate.predictions import score_records
from workers.evaluate.ranks import spearman
from workers.models import LoadedModel
from workers.schema import (
    FeedbackRecord,
    OutcomeRecord,
    Part,
    PreferenceRecord,
    Step,
    Task,
    Trajectory,
)
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.multi_objective import MultiObjectiveModule

Numbers = NDArray[np.float64]
FEATURES, STEPS = 8, 3
_WEIGHTS = np.random.default_rng(123).normal(size=FEATURES)
NUMERIC = {"backbone": "features", "layers": 1, "width": 32, "epochs": 20, "ensemble": 1}


def training_checks() -> dict[int, Callable[[bool], Check]]:
    return {
        1: given_reliabilities,
        12: uncertainty,
        13: step_rewards_of_comparisons,
    }


def numeric(seed: int, tasks: int, per_task: int = 4) -> dict[str, list[tuple[Trajectory, float]]]:
    """By task, trajectories of three steps of eight numbers, and their rewards."""
    dice = np.random.default_rng(seed)
    world: dict[str, list[tuple[Trajectory, float]]] = {}
    for task in range(tasks):
        name = f"t{seed}-{task}"
        for number in range(per_task):
            x = dice.normal(size=(STEPS, FEATURES))
            user = Step(source="user", message=(Part(text=name),))
            steps = [
                Step(
                    source="agent",
                    message=(Part(text=f"{name}/{number}/{place}"),),
                    features=tuple(map(float, row)),
                )
                for place, row in enumerate(x)
            ]
            trajectory = Trajectory(steps=(user, *steps), task=Task(id=name))
            world.setdefault(name, []).append((trajectory, hidden_reward(x)))
    return world


def hidden_reward(x: Numbers) -> float:
    """x: [steps, 8]"""
    last = x[-1]
    nonlinear = 1.2 * np.sin(last @ _WEIGHTS / 2) + 0.8 * last[0] * last[1]
    return float(nonlinear - 0.5 * last[2] + 0.6 * np.tanh(2 * x[:, 3].mean()))


def _logistic(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def choices(
    world: dict[str, list[tuple[Trajectory, float]]], items: int, seed: int, *, scale: float, eta: float
) -> list[PreferenceRecord]:
    """Three of six honest annotators on each item; ties where the rewards are close (Rao-Kupper)."""
    dice, records = np.random.default_rng(seed), []
    names = list(world)
    for item in range(items):
        runs = world[names[dice.integers(len(names))]]
        first, second = dice.choice(len(runs), 2, replace=False)
        (a, reward_a), (b, reward_b) = runs[first], runs[second]
        for annotator in dice.choice(list("pqrstu"), 3, replace=False):
            difference, drawn = scale * (reward_a - reward_b), dice.random()
            a_wins, b_wins = _logistic(difference - eta), _logistic(-difference - eta)
            choice = "a" if drawn < a_wins else "b" if drawn < a_wins + b_wins else "tie"
            records.append(
                PreferenceRecord(
                    a=a, b=b, choice=choice, annotator=str(annotator), origin="person", item=str(item)
                )  # type: ignore[arg-type]
            )
    return records


def trained(
    recipe: dict[str, Any], records: Sequence[FeedbackRecord], seed: int
) -> tuple[MultiObjectiveModule, LoadedModel]:
    torch.manual_seed(seed)
    folds = CrossValidation(parse_recipe(recipe), seed, torch.device("cpu"), lambda **_: None)
    return folds.train(records)


@torch.no_grad()
def rewards(model: LoadedModel, trajectories: Sequence[Trajectory]) -> Numbers:
    """[trajectories, heads]"""
    module = model.model
    module.eval()
    renderer = module.backbone.renderer
    found: Numbers = (
        module([renderer.render(trajectory) for trajectory in trajectories]).rewards.double().numpy()
    )
    return found


def accuracy(model: LoadedModel, seed: int) -> float:
    right = []
    for runs in numeric(seed, 60).values():
        values = rewards(model, [run for run, _ in runs]).mean(1)
        for first, second in combinations(range(len(runs)), 2):
            right.append(float((values[first] > values[second]) == (runs[first][1] > runs[second][1])))
    return statistics.mean(right)


def given_reliabilities(quick: bool) -> Check:
    found: dict[str, list[float]] = {"given": [], "equal": []}
    known: list[float] = []
    for seed in range(1 if quick else 5):
        records = choices(numeric(seed, 120), 60 if quick else 400, seed, scale=0.7, eta=1.0)
        reliability = StrictReliability()
        for record in records:
            reliability.add(record)
        estimates = reliability.estimates()
        known += estimates.values()
        told = [
            msgspec.structs.replace(record, strict_reliability=estimates.get(record.annotator))
            for record in records
        ]
        for how, values in found.items():
            model = trained({**NUMERIC, "annotators": how}, told, seed)[1]
            values.append(accuracy(model, 90 + seed))
    given, equal = (100 * statistics.mean(values) for values in found.values())
    return Check(
        "Six honest annotators on hard pairs, many ties: their reliability; held-out accuracy `given`, `equal`",
        "0.43 to 0.51; 49.4 %, 77.0 %",
        f"{min(known):.2f} to {max(known):.2f}; {given:.1f} %, {equal:.1f} %",
        "`given` at most 1 point below `equal`",
        given >= equal - 1,
    )


def uncertainty(quick: bool) -> Check:
    """Rank correlation, over held-out trajectories, of the spread with the error after the best linear map."""
    found: dict[str, list[float]] = {"heads": [], "models": []}
    for seed in range(1 if quick else 3):
        records = choices(numeric(seed, 60), 40 if quick else 140, seed, scale=2.0, eta=0.0)
        runs = [run for runs_of_task in numeric(90 + seed, 60).values() for run in runs_of_task]
        trajectories, truth = [run for run, _ in runs], np.array([reward for _, reward in runs])
        heads = rewards(trained({**NUMERIC, "ensemble": 5}, records, seed)[1], trajectories)
        models = [
            trained(NUMERIC, records, 100 + 10 * seed + number)[1] for number in range(2 if quick else 5)
        ]
        separate = np.stack([rewards(model, trajectories)[:, 0] for model in models], 1)
        for name, values in (("heads", heads), ("models", separate)):
            mean = np.c_[values.mean(1), np.ones(len(values))]
            error = np.abs(truth - mean @ np.linalg.lstsq(mean, truth, rcond=None)[0])
            found[name].append(spearman(values.std(1), error) or 0.0)
    heads_mean, models_mean = (statistics.mean(values) for values in found.values())
    return Check(
        "Rank correlation of `std` with the error: five heads of one model; five models trained apart",
        "0.07; not offered",
        f"{heads_mean:.2f}; {models_mean:.2f}",
        "below 0.25, since docs/statistics.md says that it is no error bar",
        max(abs(heads_mean), abs(models_mean)) < 0.25,
    )


def step_rewards_of_comparisons(quick: bool) -> Check:
    """What each step changed of a value learnt from whole trajectories, against what it truly added."""
    found, flagged = [], []
    for seed in range(1 if quick else 3):
        records = choices(numeric(seed, 60), 40 if quick else 140, seed, scale=2.0, eta=0.0)
        module, model = trained(NUMERIC, records, seed)
        runs = [run for runs_of_task in numeric(90 + seed, 60).values() for run, _ in runs_of_task]
        scores = [scored.scores[0] for scored in score_records(model, [_outcome(run) for run in runs])]
        steps = np.concatenate([score.step_rewards for score in scores])
        found.append(spearman(steps, np.concatenate([credit(run) for run in runs])) or 0.0)
        counts = {name: len(module.examples.by_objective(name)) for name in module.weights}
        flagged.append(learnt_from_comparisons({"by_objective": counts}))
    return Check(
        "Step rewards of `bradley_terry` with `value`: rank correlation with the true credit",
        "-0.06 (sample world), served as step rewards",
        f"{statistics.mean(found):+.2f}, flagged `steps:uncalibrated`",
        "flagged",
        all(flagged),
    )


def credit(trajectory: Trajectory) -> Numbers:
    """[steps]: what each of the three steps added to the reward, as if the trajectory had ended after it."""
    rows = np.array([step.features for step in trajectory.steps if step.features])
    values = [hidden_reward(rows[: place + 1]) for place in range(len(rows))]
    return np.diff([0.0, *values])


def _outcome(trajectory: Trajectory) -> OutcomeRecord:
    return OutcomeRecord(trajectory=trajectory, success=True)
