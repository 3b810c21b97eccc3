"""What a model that sees learns of pictures: `python -m benchmarks.pictures [--quick] [--out FILE]`.

Pairs of trajectories of equal text, each with one picture, which alone says which is better: interfaces (the colour of
a state, an error banner, which button is highlighted) and documents (alignment, spacing, hierarchy of headings). Tasks
are split: no task of the test is in training. Measured is the model with `image_encoder = "embedded"`; next to it
logistic regressions on the differences of downsampled pixels, of histograms of oriented gradients (HOG, Dalal and
Triggs 2005) and of both, with the penalty chosen by cross-validation. A model of text reads both sides alike: 0.5 by
construction, and training refuses such pairs. Means and 95 % intervals (Student's t) over seeds; every seed draws its
own pages.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.conditions import raws
from benchmarks.rendered_pages import SUBJECTS, PicturePair, picture_pair
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from workers.models.cache.embeddings import ChunkCache
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.picture_archive import write_pictures
from workers.schema.pictures import Pixels, encode_picture
from workers.schema.recipe import parse_recipe
from workers.text.pictures import forget_pictures, use_pictures
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report

Numbers = NDArray[np.float64]
SEEDS, TASKS, QUICK_TASKS = 5, 400, 60  # tasks: half of them to train on
_CACHE_BYTES = 2**30
_SIDE, _CELLS, _DIRECTIONS = 24, 8, 9


def pairs_of(group: str, seed: int, tasks: int) -> list[PicturePair]:
    subjects = SUBJECTS[group]
    return [picture_pair(subjects[task % len(subjects)], f"{group}/{seed}/{task}") for task in range(tasks)]


def record(pair: PicturePair, task: str, dice: random.Random, pictures: dict[str, bytes]) -> PreferenceRecord:
    sides = [_trajectory(pixels, task, pictures) for pixels in (pair.better, pair.worse)]
    is_first = dice.random() < 0.5
    a, b = sides if is_first else sides[::-1]
    return PreferenceRecord(a=a, b=b, choice="a" if is_first else "b", annotator="world")


def _trajectory(pixels: Pixels, task: str, pictures: dict[str, bytes]) -> Trajectory:
    data = encode_picture(pixels)
    digest = sha256(data).hexdigest()
    pictures[digest] = data
    picture = Part(type="image", source=f"sha256:{digest}", media_type="image/png")
    steps = (
        Step(source="user", message=(Part(text="Make the page."),)),
        Step(source="agent", message=(Part(text="This is the page."), picture)),
    )
    return Trajectory(steps=steps, task=Task(id=task))


def measure(group: str, seed: int, tasks: int) -> dict[str, float]:
    """By method its accuracy on the tasks that were held out, and of the model that sees by subject."""
    pairs, dice, pictures = pairs_of(group, seed, tasks), random.Random(seed), dict[str, bytes]()
    records = [record(pair, f"t{place}", dice, pictures) for place, pair in enumerate(pairs)]
    half = tasks // 2
    held_out = records[half:]
    sides = [side for each in held_out for side in (each.a, each.b)]
    is_a = np.array([each.choice == "a" for each in held_out])
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        write_pictures(Path(scratch) / "pictures.zip", pictures.items())
        use_pictures(Path(scratch))
        try:
            recipe = parse_recipe({"image_encoder": "embedded", "annotators": "equal"})
            run = CrossValidation(
                recipe, seed, torch.device("cpu"), no_report, cache=ChunkCache(_CACHE_BYTES)
            )
            rewards = np.array(raws(run.train(records[:half])[1], sides))
            right = _right(rewards[::2] - rewards[1::2], is_a)
            found["embedded"] = float(right.mean())
        finally:
            forget_pictures()
    for subject in SUBJECTS[group]:
        chosen = np.array([pair.subject == subject for pair in pairs[half:]])
        found[f"embedded, {subject}"] = float(right[chosen].mean())
    pixels, gradients = (
        np.array([[read(side) for side in (pair.better, pair.worse)] for pair in pairs])
        for read in (_downsampled, _oriented_gradients)
    )
    for name, numbers in {
        "pixels": pixels,
        "gradients": gradients,
        "pixels and gradients": np.concatenate([pixels, gradients], -1),
    }.items():
        found[name] = _regression(numbers[:half], numbers[half:])
    return found


def _right(differences: Numbers, is_a: NDArray[np.bool_]) -> Numbers:
    """1 where the better one has the higher reward, 0.5 where both have the same."""
    return np.where(np.abs(differences) < 1e-6, 0.5, (differences > 0) == is_a)


def _downsampled(pixels: Pixels) -> Numbers:
    small = Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64).ravel() / 255.0


def _oriented_gradients(pixels: Pixels) -> Numbers:
    """[_CELLS ** 2 * _DIRECTIONS]: of each cell its edges by direction, by their strength, of unit length."""
    side = 16 * _CELLS
    grey = np.asarray(Image.fromarray(pixels).convert("L").resize((side, side)), dtype=np.float64)
    down, across = np.gradient(grey)
    places = np.minimum((np.arctan2(down, across) % np.pi / np.pi * _DIRECTIONS).astype(int), _DIRECTIONS - 1)
    row, column = np.indices(grey.shape) // 16
    cells = (row * _CELLS + column) * _DIRECTIONS + places
    found = np.bincount(cells.ravel(), np.hypot(down, across).ravel(), _CELLS**2 * _DIRECTIONS)
    found = found.reshape(-1, _DIRECTIONS)
    return (found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-6)).ravel()


def _regression(training: Numbers, held_out: Numbers) -> float:
    """[pairs, 2, numbers], the better first: a regression without intercept on differences, both ways around."""
    differences = training[:, 0] - training[:, 1]
    model = make_pipeline(
        StandardScaler(with_mean=False),
        LogisticRegressionCV(
            Cs=np.logspace(-5, 1, 7),
            cv=5,
            fit_intercept=False,
            max_iter=500,
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
            scoring="accuracy",
        ),
    )
    model.fit(np.concatenate([differences, -differences]), np.repeat([1, 0], len(differences)))
    margins = model.decision_function(held_out[:, 0] - held_out[:, 1])
    return float(np.where(np.abs(margins) < 1e-9, 0.5, margins > 0).mean())


def lines(table: dict[str, dict[str, Any]], tasks: int) -> Sequence[str]:
    return [
        f"{group}, {name} ({tasks // 2} tasks held out a seed): {described(found, name)}"
        for group, rows in table.items()
        for name, found in rows.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed of the interfaces, few tasks")
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    options = parser.parse_args()
    kept, table = ResultCache(options.out), {}
    tasks = QUICK_TASKS if options.quick else TASKS
    for group in ("interfaces",) if options.quick else SUBJECTS:
        by_seed = [
            kept.get(group, seed, lambda name, seed: measure(name, seed, tasks))
            for seed in range(1 if options.quick else SEEDS)
        ]
        table[group] = {name: mean_with_interval([found[name] for found in by_seed]) for name in by_seed[0]}
    sys.stdout.write(json.dumps(table) + "\n" if options.json else "\n".join(lines(table, tasks)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
