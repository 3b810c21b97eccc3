"""What certificates against noise are worth: `python -m benchmarks.noise_certificates [--quick] [--out FILE]`.

Episodes of CartPole by policies of different skill, recorded by `touchstone_client.recording`. A model learns from
comparisons by the length of the episode, which it is not shown. Of held-out episodes, cut to their first 40 steps so
that length tells nothing, the mean reward under noise has a certified lower bound at every radius, as in Policy
Smoothing (Kumar, Levine and Feizi 2022); next to it stands the lowest of what attacks within the radius reach:
changes along the gradient of the reward and three at random. A bound above an attack would be wrong; the distance
between them is what it gives away. Rewards are in standard deviations over the training trajectories, cut to five on
either side. Means and 95 % intervals (Student's t) over seeds.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gymnasium
import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from touchstone_client.recording import RecordEpisodes

from apps.trajectories.formats.benchmarks import gymnasium as episodes
from benchmarks.conditions import raws
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from workers.evaluate.noise_certificate import noisy_rewards, smoothed_lower_bound
from workers.models import LoadedModel
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import parse_recipe
from workers.text import Numbers
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report

Floats = NDArray[np.float64]
SEEDS, TASKS, HELD_OUT, STEPS = 5, 100, 10, 40
NOISE, SAMPLES, ATTACK_SAMPLES, RANDOM_ATTACKS, HIGHEST = 0.5, 500, 200, 3, 5.0
RADII = (0.0, 0.2, 0.5, 1.0)  # in units of the noise
RECIPE = {"backbone": "features", "layers": 0, "aggregation": "mean", "annotators": "equal"}


def play(task: int, skill: float, dice: random.Random) -> Trajectory:
    """An episode of a policy that holds the pole in that share of steps, and moves at random in the others."""
    recorded: list[dict[str, Any]] = []
    env = RecordEpisodes(
        gymnasium.make("CartPole-v1", max_episode_steps=200), recorded.append, task=f"start {task}"
    )
    seen, _ = env.reset(seed=task)
    ended = False
    while not ended:
        good = int(seen[2] + 0.5 * seen[3] + 0.05 * seen[0] > 0)
        seen, _, terminated, truncated, _ = env.step(good if dice.random() < skill else dice.randrange(2))
        ended = terminated or truncated
    env.close()
    return episodes.read(recorded[0])


def measure(seed: int, tasks: int, held_out: int) -> dict[str, float]:
    """By radius: `bound` and `attacked`, means over held-out episodes; `wrong`, the share of bounds above an attack."""
    dice = random.Random(seed)
    records = []
    for task in range(tasks):
        a, b = (play(1000 * seed + task, skill, dice) for skill in (dice.random(), dice.random()))
        if a.reward != b.reward:
            is_a = (a.reward or 0) > (b.reward or 0)
            choice: Literal["a", "b"] = "a" if is_a else "b"
            records.append(PreferenceRecord(a=_begun(a), b=_begun(b), choice=choice, annotator="world"))
    training, test = records[held_out:], records[:held_out]
    model = CrossValidation(parse_recipe(RECIPE), seed, torch.device("cpu"), no_report).train(training)[1]
    known = np.array(raws(model, [side for record in training for side in (record.a, record.b)]))
    middle, unit = float(known.mean()), float(known.std())
    found: dict[str, list[float]] = {}
    for record in test:
        numbers = model.render(record.a)
        drawn = np.random.default_rng(seed)
        rewards = (noisy_rewards(model, numbers, NOISE, SAMPLES, drawn) - middle) / unit
        for radius in RADII:
            bound = smoothed_lower_bound(rewards, lowest=-HIGHEST, highest=HIGHEST, radius=radius)
            changes = [
                _along_gradient(model, numbers),
                *(drawn.normal(size=_shape(numbers)) for _ in range(RANDOM_ATTACKS)),
            ]
            lowest = min(
                _smoothed(model, _moved(model, numbers, change, NOISE * radius), drawn, middle, unit)
                for change in (changes if radius else changes[:1])
            )
            found.setdefault(f"radius {radius} bound", []).append(bound)
            found.setdefault(f"radius {radius} attacked", []).append(lowest)
            found.setdefault(f"radius {radius} wrong", []).append(float(lowest < bound))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _begun(trajectory: Trajectory) -> Trajectory:
    return msgspec.structs.replace(trajectory, steps=trajectory.steps[:STEPS])


def _shape(numbers: Numbers) -> tuple[int, int]:
    return len(numbers.rows), len(numbers.rows[0])


def _smoothed(
    model: LoadedModel, numbers: Numbers, drawn: np.random.Generator, middle: float, unit: float
) -> float:
    rewards = (noisy_rewards(model, numbers, NOISE, ATTACK_SAMPLES, drawn) - middle) / unit
    return float(np.clip(rewards, -HIGHEST, HIGHEST).mean())


def _moved(model: LoadedModel, numbers: Numbers, change: Floats, length: float) -> Numbers:
    size = float(np.linalg.norm(change))
    if not length or not size:
        return numbers
    scaled = change / size * length * _deviations(model, len(numbers.rows[0]))
    rows = tuple(tuple(map(float, row)) for row in np.array(numbers.rows) + scaled)
    return replace(numbers, rows=rows)


def _deviations(model: LoadedModel, length: int) -> Floats:
    backbone: Any = model.model.backbone
    found: Floats = backbone.deviations(length)
    return found


def _along_gradient(model: LoadedModel, numbers: Numbers) -> Floats:
    """Down the reward, by differences: in standard deviations of the training data."""
    rows, deviations = np.array(numbers.rows), _deviations(model, len(numbers.rows[0]))
    inputs = []
    for place in np.ndindex(rows.shape):
        for sign in (0.1, -0.1):
            moved = rows.copy()
            moved[place] += sign * deviations[place[1]]
            inputs.append(replace(numbers, rows=tuple(tuple(map(float, row)) for row in moved)))
    found = np.array([score.raw for score in model.score(inputs)]).reshape(*rows.shape, 2)
    gradient: Floats = found[..., 1] - found[..., 0]
    return gradient


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few episodes")
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    options = parser.parse_args()
    kept = ResultCache(options.out)
    tasks, held_out = (30, 3) if options.quick else (TASKS, HELD_OUT)
    by_seed: Sequence[dict[str, float]] = [
        kept.get("cartpole", seed, lambda _, seed: measure(seed, tasks, held_out))
        for seed in range(1 if options.quick else SEEDS)
    ]
    table = {name: mean_with_interval([found[name] for found in by_seed]) for name in by_seed[0]}
    lines = [described(found, name) for name, found in table.items()]
    sys.stdout.write(json.dumps(table) + "\n" if options.json else "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
