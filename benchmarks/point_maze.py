"""Policies for goals from logs alone: `python -m benchmarks.point_maze [--quick] [--out FILE]`.

A point walks in the unit square, up to 0.1 along each side in a step, between two walls that make an S of three
corridors. The logs are of an agent that heads straight for a goal, as if there were no walls, in half of its steps, and
otherwise wanders: each has 40 steps, too few for the whole way through the S, so that a policy for far goals has to be
put together from several logs. Three policies, all the same network, fitted by least squares to the steps of the logs:

cloning                 each step, for the goal that its log was asked for
hindsight cloning       each step, for places that its log came to later (Ghosh et al. 2019, arXiv 1912.06088)
scores                  the same pairs, weighted by exp(A / T), with A the step reward that a model of the objective
                        `smore` gives the step for that place, in standard deviations. T is chosen for each seed by
                        success on starts and goals of their own

The learning rate and the expectile of the model were chosen on other logs, by how well its scores order actions from
one place by the length of the way that is left.

Measured: the share of 100 new pairs of start and goal from which the policy comes within 0.1 of the goal in 80 steps,
over all of them and over those in different corridors. Means and 95 % intervals (Student's t) over seeds; every seed
draws its own logs. `difference` is that of scores and hindsight cloning by seed.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.output import put_out
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from workers.models import LoadedModel
from workers.schema import OutcomeRecord, Step, Task, Trajectory
from workers.schema.conditions import conditioned_records, with_conditions
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report

SEEDS, LOGS, STEPS = 5, 200, 40
WALK, NEAR, MOST_STEPS = 0.1, 0.1, 80
PAIRS, CHOOSING = 100, 60  # of start and goal: measured, and to choose T by
WINDOWS, LATER = 4, 3  # of a log: parts that the model learns from, and later places for each step
TEMPERATURES = (2.0, 1.0, 0.5, 0.25)
METHODS = ("cloning", "hindsight cloning", "scores")
# y of each wall, and between which x it is.
WALLS = ((1 / 3, 0.0, 0.75), (2 / 3, 0.25, 1.0))
RECIPE = {
    "objective": "smore",
    "backbone": "features",
    "layers": 0,
    "width": 256,
    "dropout": 0.0,
    "ensemble": 1,
    "hindsight": 1,
    "expectile": 0.7,
    "learning_rate": 5e-3,
    "weight_decay": 0.0,
    "batch_pairs": 32,
    "epochs": 30,
    "patience": 0,
}


def moved(place: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Places after actions, [points, 2] each: where the way crosses a wall, the point stays."""
    end = np.clip(place + np.clip(action, -WALK, WALK), 0, 1)
    blocked = np.zeros(len(place), dtype=bool)
    for height, left, right in WALLS:
        rise = end[:, 1] - place[:, 1]
        share = (height - place[:, 1]) / np.where(rise == 0, 1e-12, rise)
        crossing = place[:, 0] + share.clip(-2, 2) * (end[:, 0] - place[:, 0])
        blocked |= (share >= 0) & (share <= 1) & (crossing >= left) & (crossing <= right)
    return np.where(blocked[:, None], place, end)


def corridor(place: np.ndarray) -> np.ndarray:
    return np.digitize(place[..., 1], [wall[0] for wall in WALLS])


@dataclass(frozen=True)
class Logs:
    """places: [logs, steps + 1, 2]; actions: [logs, steps, 2]; goals: [logs, 2]."""

    places: np.ndarray
    actions: np.ndarray
    goals: np.ndarray

    @classmethod
    def drawn(cls, dice: np.random.Generator, count: int) -> "Logs":
        place, goals = dice.uniform(size=(count, 2)), dice.uniform(size=(count, 2))
        heading = dice.uniform(-1, 1, size=(count, 2))
        places, actions = [place], []
        for _ in range(STEPS):
            turns = dice.random(count) < 0.2
            heading = np.where(turns[:, None], dice.uniform(-1, 1, size=(count, 2)), heading)
            straight = (goals - place) / np.maximum(np.abs(goals - place).max(1, keepdims=True), WALK)
            chosen = np.where(dice.random((count, 1)) < 0.5, straight, heading)
            action = np.clip(WALK * chosen + dice.normal(0, 0.02, size=(count, 2)), -WALK, WALK)
            place = moved(place, action)
            places.append(place)
            actions.append(action)
        return cls(np.stack(places, 1), np.stack(actions, 1), goals)

    def later(self, dice: np.random.Generator, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of a step and a later place: numbers of the log, of the step, and of the place, [pairs] each."""
        log, step = (
            np.repeat(grid.ravel(), each)
            for grid in np.meshgrid(np.arange(len(self.goals)), np.arange(STEPS), indexing="ij")
        )
        return log, step, step + 1 + dice.integers(0, STEPS - step)

    def part(self, log: int, first: int, last: int, **metadata: Any) -> Trajectory:
        """Of its steps [first, last]: where the point is, and how it moves."""
        rows = np.concatenate([self.places[log, first : last + 1], self.actions[log, first : last + 1]], 1)
        steps = tuple(Step(source="agent", features=tuple(row)) for row in rows.tolist())
        return Trajectory(steps=steps, task=Task(id=f"log {log}"), metadata=metadata)


def score_model(logs: Logs, dice: np.random.Generator, seed: int, **fields: Any) -> LoadedModel:
    """Learnt from parts of the logs, each of which reached the place where it ends."""
    records = []
    for log in range(len(logs.goals)):
        for _ in range(WINDOWS):
            first, last = sorted(dice.choice(STEPS, 2, replace=False).tolist())
            reached = json.dumps(logs.places[log, last + 1].tolist())
            goal = json.dumps(logs.goals[log].tolist())
            success = bool(np.linalg.norm(logs.places[log, last + 1] - logs.goals[log]) < NEAR)
            run = logs.part(log, first, last, goal=goal, reached=reached)
            records.append(OutcomeRecord(trajectory=run, success=success))
    recipe = parse_recipe(RECIPE | fields)
    kept = conditioned_records(records, recipe.conditioned)
    _, model = CrossValidation(recipe, seed, torch.device("cpu"), no_report).train(kept)
    return model


def step_rewards(model: LoadedModel, logs: Logs, pairs: tuple[np.ndarray, ...]) -> np.ndarray:
    """[pairs]: what each step earns on the way to its place: the second of two steps; of a first step, itself alone."""
    found = []
    for start in range(0, len(pairs[0]), 4096):
        runs = []
        for log, step, place in zip(*(part[start : start + 4096].tolist() for part in pairs), strict=True):
            run = logs.part(log, max(step - 1, 0), step)
            goal = json.dumps(logs.places[log, place].tolist())
            runs.append(with_conditions(run, ("goal",), {"goal": goal}))
        found += [score.step_rewards[-1] for score in model.score([model.render(run) for run in runs])]
    return np.array(found)


def fitted_policy(
    inputs: np.ndarray, actions: np.ndarray, weights: np.ndarray, seed: int, steps: int
) -> nn.Module:
    """inputs: place and goal, [rows, 4]; by weighted least squares."""
    torch.manual_seed(seed)
    policy = nn.Sequential(
        nn.Linear(4, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 2), nn.Tanh()
    )
    x, y, w = (torch.tensor(each, dtype=torch.float32) for each in (inputs, actions / WALK, weights))
    optimiser = torch.optim.Adam(policy.parameters(), 1e-3)
    dice = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(x), (256,), generator=dice)
        loss = (w[rows] * (policy(2 * x[rows] - 1) - y[rows]).square().sum(1)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return policy


@torch.no_grad()
def successes(policy: nn.Module, starts: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Whether the policy comes near each goal, [pairs]."""
    place, there = starts, np.zeros(len(starts), dtype=bool)
    for _ in range(MOST_STEPS):
        x = torch.tensor(np.concatenate([place, goals], 1), dtype=torch.float32)
        place = moved(place, WALK * policy(2 * x - 1).double().numpy())
        there |= np.linalg.norm(place - goals, axis=1) < NEAR
    return there


def measure(seed: int, logs: int, policy_steps: int, **fields: Any) -> dict[str, Any]:
    """By method, the shares of pairs."""
    dice = np.random.default_rng(1000 + seed)  # not those that the model was chosen on
    drawn = Logs.drawn(dice, logs)
    starts, goals, choosing_starts, choosing_goals = (
        dice.uniform(size=(count, 2)) for count in (PAIRS, PAIRS, CHOOSING, CHOOSING)
    )
    is_far = corridor(starts) != corridor(goals)
    pairs = drawn.later(dice, LATER)
    log, step, place = pairs
    actions = drawn.actions[log, step]
    asked, reached = (
        np.concatenate([drawn.places[log, step], wanted], 1)
        for wanted in (drawn.goals[log], drawn.places[log, place])
    )
    equal = np.ones(len(log))

    def shares(policy: nn.Module) -> dict[str, float]:
        there = successes(policy, starts, goals)
        return {"all": float(there.mean()), "far": float(there[is_far].mean())}

    cloned = fitted_policy(asked, actions, equal, seed, policy_steps)
    relabelled = fitted_policy(reached, actions, equal, seed, policy_steps)
    found: dict[str, Any] = {"cloning": shares(cloned), "hindsight cloning": shares(relabelled)}
    rewards = step_rewards(score_model(drawn, dice, seed, **fields), drawn, pairs)
    standard = (rewards - rewards.mean()) / rewards.std()
    best = -1.0
    for temperature in TEMPERATURES:
        weights = np.minimum(np.exp(standard / temperature), 100.0)
        policy = fitted_policy(reached, actions, weights / weights.mean(), seed, policy_steps)
        chosen_by = float(successes(policy, choosing_starts, choosing_goals).mean())
        if chosen_by > best:
            best, found["scores"] = chosen_by, shares(policy) | {"temperature": temperature}
    found["difference"] = {
        part: found["scores"][part] - found["hindsight cloning"][part] for part in ("all", "far")
    }
    sys.stderr.write(json.dumps({"seed": seed, **found}) + "\n")
    return found


def summary(by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        name: {part: mean_with_interval([found[name][part] for found in by_seed]) for part in ("all", "far")}
        for name in (*METHODS, "difference")
    }


def _lines(found: dict[str, Any]) -> list[str]:
    lines = ["goals reached, mean over seeds with 95 % intervals"]
    for name, parts in found.items():
        shown = ", ".join(described(value, part) for part, value in parts.items())
        lines.append(f"    {name}: {shown}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.point_maze", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few logs, two epochs: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    arguments = parser.parse_args()
    cache = ResultCache(arguments.out)

    def find(_: str, seed: int) -> dict[str, Any]:
        if arguments.quick:
            return measure(seed, 20, 20, epochs=2)
        return measure(seed, LOGS, 2500)

    seeds = range(1 if arguments.quick else arguments.seeds)
    found = summary([cache.get("point maze", seed, find) for seed in seeds])
    arguments.out = None
    put_out(found, _lines(found), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
