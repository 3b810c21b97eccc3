"""What a model learns of teams: `python -m benchmarks.teams [--quick] [--out FILE]`.

Episodes of the multi-agent particle environment simple_spread (Lowe et al. 2017; the package `mpe2`): three agents are
to cover three landmarks without collisions. Each task is a start, played four times by policies of different skill,
recorded as a team's by `touchstone_client.pettingzoo` and read as an imported file is. Which of two episodes of a task
is better is decided by the return of the team, which no model is shown. Tasks are split: none of the test is in
training.

Next to the model stands a logistic regression on the differences of the means, over all steps of all agents, of the
numbers, of their sizes and of their squares, standardised, with the penalty chosen by cross-validation over tasks: the
best of three such sets of numbers, chosen by the same cross-validation. Means and 95 % intervals (Student's t) over
seeds; every seed draws its own episodes.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mpe2 import simple_spread_v3  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler
from touchstone_client.pettingzoo import RecordParallel

from apps.trajectories.formats.benchmarks import gymnasium as episodes
from benchmarks.conditions import raws
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report

Numbers = NDArray[np.float64]
SEEDS, AGENTS, EPISODES, TURNS = 5, 3, 4, 25
HELD_OUT = 60  # tasks
SIZES = (100, 300)  # tasks to train on, six comparisons each
QUICK = (6, 6)
_PENALTIES = tuple(np.logspace(-4, 1, 6))
RECIPE = {"backbone": "features", "layers": 0, "aggregation": "mean", "annotators": "equal"}


def play(task: int, skill: float, dice: random.Random) -> Trajectory:
    """An episode of agents that move towards a landmark in that share of turns, each to another or all to the nearest,
    and at random in the others."""
    recorded: list[dict[str, Any]] = []
    env = RecordParallel(
        simple_spread_v3.parallel_env(N=AGENTS, max_cycles=TURNS),
        recorded.append,
        unit="team",
        task=f"start {task}",
    )
    seen, _ = env.reset(seed=task)
    divides = dice.random() < 0.5
    while env.agents:
        actions = {}
        for place, agent in enumerate(env.agents):
            landmarks = np.reshape(seen[agent][4 : 4 + 2 * AGENTS], (AGENTS, 2))
            nearest = int(np.argmin((landmarks**2).sum(1)))
            across, up = landmarks[place if divides else nearest]
            towards = (2 if across > 0 else 1) if abs(across) > abs(up) else (4 if up > 0 else 3)
            actions[agent] = towards if dice.random() < skill else dice.randrange(5)
        seen, _, _, _, _ = env.step(actions)
    env.close()
    return episodes.read(recorded[0])


def task_records(task: int, dice: random.Random) -> list[PreferenceRecord]:
    """Every two of the episodes of a start."""
    played = [play(task, dice.random(), dice) for _ in range(EPISODES)]
    found = []
    for a, b in combinations(played, 2):
        assert a.reward is not None
        assert b.reward is not None
        found.append(
            PreferenceRecord(a=a, b=b, choice="a" if a.reward > b.reward else "b", annotator="world")
        )
    return found


def measure(seed: int, sizes: Sequence[int], held_out: int) -> dict[str, float]:
    """By method and number of comparisons, the accuracy on held-out tasks."""
    dice = random.Random(seed)
    tasks = [task_records(1000 * seed + task, dice) for task in range(held_out + max(sizes))]
    test = [record for task in tasks[:held_out] for record in task]
    is_a = np.array([record.choice == "a" for record in test])
    found: dict[str, float] = {}
    for size in sizes:
        training = [record for task in tasks[held_out : held_out + size] for record in task]
        run = CrossValidation(parse_recipe(RECIPE), seed, torch.device("cpu"), no_report)
        rewards = np.array(
            raws(run.train(training)[1], [side for record in test for side in (record.a, record.b)])
        )
        right = (rewards[::2] > rewards[1::2]) == is_a
        found[f"team model, {len(training)} comparisons"] = float(right.mean())
        found[f"tuned regression, {len(training)} comparisons"] = regression(training, test)
    return found


def moments(trajectory: Trajectory) -> list[Numbers]:
    """Means over all steps of all agents: of the numbers; of these and their sizes; and of their squares too."""
    rows = np.array([trajectory.steps[index].features for index in trajectory.agent_steps])
    parts = [rows.mean(0), np.abs(rows).mean(0), (rows**2).mean(0)]
    return [np.concatenate(parts[:count]) for count in (1, 2, 3)]


def regression(training: Sequence[PreferenceRecord], test: Sequence[PreferenceRecord]) -> float:
    tasks = [record.a.task.id for record in training]
    best: tuple[float, float] | None = None
    for place in range(3):
        known, asked = (
            np.array([moments(record.a)[place] - moments(record.b)[place] for record in records])
            for records in (training, test)
        )
        scaler = StandardScaler(with_mean=False).fit(known)
        known, asked = scaler.transform(known), scaler.transform(asked)
        wins, wanted = (
            np.array([record.choice == "a" for record in records]) for records in (training, test)
        )
        for penalty in _PENALTIES:
            folds = GroupKFold(5).split(known, groups=tasks)
            scores = [
                _right(_fit(known[fit], wins[fit], penalty), known[rest], wins[rest]) for fit, rest in folds
            ]
            score = float(np.mean(scores))
            if best is None or score > best[0]:
                best = score, _right(_fit(known, wins, penalty), asked, wanted)
    assert best is not None
    return best[1]


def _fit(differences: Numbers, wins: NDArray[np.bool_], penalty: float) -> Numbers:
    model = LogisticRegression(C=penalty, fit_intercept=False, max_iter=500)
    weights: Numbers = model.fit(
        np.concatenate([differences, -differences]), np.concatenate([wins, ~wins])
    ).coef_[0]
    return weights


def _right(weights: Numbers, differences: Numbers, wins: NDArray[np.bool_]) -> float:
    return float(((differences @ weights > 0) == wins).mean())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few tasks")
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    options = parser.parse_args()
    kept = ResultCache(options.out)
    held_out, sizes = (QUICK[0], QUICK[1:]) if options.quick else (HELD_OUT, SIZES)
    by_seed = [
        kept.get("teams", seed, lambda _, seed: measure(seed, sizes, held_out))
        for seed in range(1 if options.quick else SEEDS)
    ]
    table = {name: mean_with_interval([found[name] for found in by_seed]) for name in by_seed[0]}
    lines = [
        f"{name} ({6 * held_out} held-out pairs a seed): {described(found)}" for name, found in table.items()
    ]
    sys.stdout.write(json.dumps(table) + "\n" if options.json else "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
