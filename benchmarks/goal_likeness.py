"""Likeness to a goal as a reward, on rendered frames: `python -m benchmarks.goal_likeness [--quick] [--out FILE]`.

A small CLIPModel is trained on frames of CartPole and MountainCar with captions made from the state
(`benchmarks.two_towers`), imported with the type goal-likeness, and asked for the goal. Backgrounds have colours that
say nothing of the reward; a third of the captions name them. Measured over seeds, each with its own model and frames,
with 95 % intervals (Student's t):

- the distance of the reward to the true one by alpha, with texts of the goal alone, and with texts that describe the
  scene as well, in both the same: EPIC (Gleave et al. 2021, arXiv 2006.13900) with states that are
  drawn at will. Both rewards are of the next state alone, so that canonical shaping adds constants, and what is left is
  Pearson's distance sqrt((1 - r) / 2): 0 for the same reward up to scale, 0.707 for an unrelated one;
- the same after comparisons: pairs of frames ordered by a noisy true reward, and the accuracy on held-out pairs;
- a linear policy trained on the reward of rendered frames by the cross-entropy method, without seeing the true reward:
  the true return before and after, next to a policy that is trained on the true reward itself.

Public CLIP weights were not run. With a folder of them on this machine (config.json, model.safetensors, tokenizer and
preprocessor_config.json), `python -m benchmarks.goal_likeness --encoder FOLDER` does the same with those.
"""

import argparse
import base64
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.rendered_control import BACKGROUNDS, CONTROLS, RenderedControl, drawn, vocabulary
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from benchmarks.two_towers import train_two_towers
from workers.importing.importer import run
from workers.json_files import write_json
from workers.models import LoadedModel, load
from workers.models.cache.embeddings import ChunkCache
from workers.schema import FeedbackRecord, ObservationResult, Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.goal_likeness import GoalTexts
from workers.schema.parents import manifest_recipe
from workers.schema.pictures import Pixels, encode_picture
from workers.schema.recipe import parse_recipe, recipe_to_dict
from workers.schema.storage import write_records
from workers.train.pipeline import train

Numbers = NDArray[np.float64]
SEEDS = 3
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
POLICY_ALPHAS = (0.0, 0.5)
# What is added to goal and baseline alike, as people do who describe a picture; the frames have other backgrounds, too.
SCENE = " on a white background"
FRAMES, STEPS, STATES, PAIRS = 1500, 1200, 400, 240
QUICK_FRAMES, QUICK_STEPS, QUICK_STATES, QUICK_PAIRS = 64, 8, 40, 40
ROUNDS, POPULATION, ELITE = 5, 8, 3  # of the cross-entropy method
TESTED = 10  # episodes of the true return
_CACHE_BYTES = 2**28
_NOISE = 0.1  # of comparisons, that are the wrong way around


class FrameReward:
    """What a model gives frames, each as a trajectory of one step that shows it."""

    def __init__(self, model: LoadedModel, cache: ChunkCache) -> None:
        self.model, self.cache = model, cache

    def with_alpha(self, texts: GoalTexts, alpha: float) -> "FrameReward":
        return FrameReward(self.model.looking_for(texts.with_alpha(alpha)), self.cache)

    def __call__(self, frames: Sequence[Pixels]) -> Numbers:
        rendered = [self.model.render(frame_trajectory(frame)) for frame in frames]
        return np.array([score.raw for score in self.model.score(rendered, cache=self.cache)])


def frame_trajectory(frame: Pixels, task: str = "frame") -> Trajectory:
    source = f"data:image/png;base64,{base64.b64encode(encode_picture(frame)).decode()}"
    seen = ObservationResult(content=(Part(type="image", source=source, media_type="image/png"),))
    steps = (
        Step(source="user", message=(Part(text="Go on."),)),
        Step(source="agent", message=(Part(text="Done."),), observation=(seen,)),
    )
    return Trajectory(steps=steps, task=Task(id=task))


def measure(name: str, seed: int, *, encoder: Path | None, quick: bool) -> dict[str, Any]:
    control, began = CONTROLS[name], time.monotonic()
    sizes = (QUICK_FRAMES, QUICK_STEPS, QUICK_STATES, QUICK_PAIRS)
    frames, steps, states, pairs = sizes if quick else (FRAMES, STEPS, STATES, PAIRS)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        folder, found = Path(scratch), dict[str, Any]()
        if encoder is None:
            found["contrastive loss"] = _train_encoder(control, folder / "clip", frames, steps, seed)
        described = GoalTexts(control.goal + SCENE, control.baseline + SCENE, 0.5)
        model = imported(encoder or folder / "clip", folder / "import", described)
        reward = FrameReward(model, ChunkCache(_CACHE_BYTES))
        scenes, pictures = drawn(control, states, 10_000 + seed)
        true = np.array([control.true_reward(scene.state) for scene in scenes])
        short = GoalTexts(control.goal, control.baseline, 0.5)
        for name_of_texts, texts in (("scene described", described), ("goal alone", short)):
            at = f"distance, {name_of_texts}"
            for alpha in ALPHAS:
                found[f"{at}, alpha {alpha:g}"] = distance(reward.with_alpha(texts, alpha)(pictures), true)
            found[f"{at}, fall to 0.5"] = found[f"{at}, alpha 0"] - found[f"{at}, alpha 0.5"]
        found |= adapted(control, folder, pairs, seed, pictures, true)
        rounds, tested, steps_seen = (1, 2, 5) if quick else (ROUNDS, TESTED, control.steps)
        for alpha in POLICY_ALPHAS:
            of_frames = reward.with_alpha(described, alpha)
            policy = improve(control, _frame_return(control, of_frames, steps_seen), seed, rounds)
            found |= _policy_figures(control, f"alpha {alpha:g}", policy, seed, tested)
        policy = improve(control, _true_return(control), seed, rounds)
        found |= _policy_figures(control, "true reward", policy, seed, tested)
    sys.stderr.write(f"{name}, seed {seed}: {time.monotonic() - began:.0f} s\n")
    return found


def _train_encoder(control: RenderedControl, folder: Path, frames: int, steps: int, seed: int) -> float:
    scenes, pictures = drawn(control, frames, seed)
    dice = random.Random(seed)
    words = vocabulary(
        [
            *(scene.caption(control, dice) for scene in scenes for _ in range(9)),
            control.goal,
            control.baseline,
        ]
    )
    return train_two_towers(
        folder,
        pictures,
        lambda index, dice: scenes[index].caption(control, dice),
        words,
        steps=steps,
        seed=seed,
    )


def imported(public: Path, folder: Path, texts: GoalTexts) -> LoadedModel:
    folder.mkdir()
    options = {"goal": texts.goal, "baseline": texts.baseline, "alpha": texts.alpha}
    write_json(folder / "request.json", {"checkpoint": str(public), "options": options})
    run(folder)
    return load(folder / "model")


def distance(reward: Numbers, true: Numbers) -> float:
    """Pearson's, 0 to 1."""
    if min(reward.std(), true.std()) < 1e-9:
        return math.sqrt(0.5)  # a constant reward is related to none
    return math.sqrt(max(0.0, 1 - float(np.corrcoef(reward, true)[0, 1])) / 2)


def adapted(
    control: RenderedControl,
    folder: Path,
    pairs: int,
    seed: int,
    pictures: Sequence[Pixels],
    true: Numbers,
) -> dict[str, float]:
    """Trained on comparisons of frames: half of the pairs, a quarter for validation and for the test each."""
    dice = np.random.default_rng(20_000 + seed)
    records: list[FeedbackRecord] = []
    while len(records) < pairs:
        a, b = control.draw(dice), control.draw(dice)
        gap = control.true_reward(a) - control.true_reward(b)
        if not gap:
            continue
        is_a = (gap > 0) != (dice.random() < _NOISE)
        task = f"t{len(records)}"
        sides = (frame_trajectory(control.frame(state, _background(dice)), task) for state in (a, b))
        records.append(
            PreferenceRecord(a=next(sides), b=next(sides), choice="a" if is_a else "b", annotator="world")
        )
    manifest = json.loads((folder / "import" / "model" / "touchstone.json").read_text())
    recipe = parse_recipe(manifest_recipe(manifest, name=str(folder / "import" / "model")))
    directory = folder / "run"
    (directory / "data").mkdir(parents=True)
    half, three = pairs // 2, pairs * 3 // 4
    for split, part in (
        ("train", records[:half]),
        ("validation", records[half:three]),
        ("test", records[three:]),
    ):
        write_records(directory / "data" / f"{split}.jsonl.zst", part)
    config = {"recipe": recipe_to_dict(recipe), "seed": seed, "device": "cpu", "attempt": 1}
    config |= {"budget": {"seconds": None}, "snapshot": {"name": "benchmark/frames@1", "hash": "benchmark"}}
    write_json(directory / "config.json", config)
    compared = train(directory)["zero_shot"]
    reward = FrameReward(load(directory / "model"), ChunkCache(_CACHE_BYTES))
    return {
        "distance, after comparisons": distance(reward(pictures), true),
        "pairs right, zero-shot": compared["zero_shot"],
        "pairs right, after comparisons": compared["adapted"],
        "alpha after comparisons": compared["alpha"]["adapted"],
    }


def _frame_return(
    control: RenderedControl, reward: FrameReward, steps: int
) -> Callable[[Numbers, int], float]:
    """Of an episode in front of a background that is drawn for it."""
    dice = np.random.default_rng(60_000)

    def returned(weights: Numbers, seed: int) -> float:
        background = _background(dice)
        frames = [control.frame(state, background) for state in control.episode(weights, seed, steps)]
        return float(reward(frames).mean())

    return returned


def _background(dice: np.random.Generator) -> str:
    return str(dice.choice([*BACKGROUNDS]))


def _true_return(control: RenderedControl) -> Callable[[Numbers, int], float]:
    def returned(weights: Numbers, seed: int) -> float:
        return float(np.mean([control.true_reward(state) for state in control.episode(weights, seed)]))

    return returned


def improve(
    control: RenderedControl, returned: Callable[[Numbers, int], float], seed: int, rounds: int
) -> Numbers:
    """The mean of the last round of the cross-entropy method (Rubinstein and Kroese 2004)."""
    dice = np.random.default_rng(30_000 + seed)
    size = int(control.world.observation_space.shape[0]) + 1
    # The positions and speeds of MountainCar are small numbers, and a policy is a direction.
    mean, std = np.zeros(size), np.ones(size)
    std[-1] = 0.1
    for number in range(rounds):
        tried = mean + std * dice.standard_normal((POPULATION, size))
        values = [returned(weights, 1000 * seed + number) for weights in tried]
        best = tried[np.argsort(values)[-ELITE:]]
        mean, std = best.mean(0), best.std(0) + 0.1 / (1 + number)
    return mean


def _policy_figures(
    control: RenderedControl, name: str, weights: Numbers, seed: int, tested: int
) -> dict[str, float]:
    """After, and gained over policies that are drawn as the first round draws them."""
    dice = np.random.default_rng(40_000 + seed)
    returned = _true_outcome(control)
    seeds = [50_000 + 100 * seed + place for place in range(tested)]
    after = float(np.mean([returned(weights, each) for each in seeds]))
    scales = np.ones(len(weights))
    scales[-1] = 0.1
    before = float(np.mean([returned(scales * dice.standard_normal(len(weights)), each) for each in seeds]))
    return {
        f"outcome before, {name}": before,
        f"outcome, {name}": after,
        f"outcome gained, {name}": after - before,
    }


def _true_outcome(control: RenderedControl) -> Callable[[Numbers, int], float]:
    """Of CartPole the share of steps with the pole upright, of MountainCar whether the flag was reached."""

    def outcome(weights: Numbers, seed: int) -> float:
        rewards = [control.true_reward(state) for state in control.episode(weights, seed)]
        return float(np.mean(rewards)) if control.name == "CartPole" else float(max(rewards) >= 0)

    return outcome


def lines(table: dict[str, dict[str, Any]], seeds: int) -> list[str]:
    shown = [f"{name} ({seeds} seeds)" for name in table]
    return [
        line
        for head, rows in zip(shown, table.values(), strict=True)
        for line in (head, *(f"    {described(found, key)}" for key, found in rows.items()))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed of CartPole, few frames: does it run?")
    parser.add_argument("--encoder", type=Path, help="a folder of public CLIP or SigLIP weights")
    parser.add_argument("--part", action="append", choices=CONTROLS, help="only these (all without)")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept, table = ResultCache(options.out), {}
    seeds = 1 if options.quick else options.seeds

    def find(name: str, seed: int) -> dict[str, Any]:
        return measure(name, seed, encoder=options.encoder, quick=options.quick)

    for name in options.part or (["CartPole"] if options.quick else [*CONTROLS]):
        by_seed = [kept.get(name, seed, find) for seed in range(seeds)]
        table[name] = {key: mean_with_interval([found[key] for found in by_seed]) for key in by_seed[0]}
    sys.stdout.write(json.dumps(table) + "\n" if options.json else "\n".join(lines(table, seeds)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
