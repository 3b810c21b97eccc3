"""What `benchmarks.gpu_check` trains: a decoder with random weights, comparisons of random words, and whole runs."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.small_decoder import save_decoder
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory, write_records
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict

_WORDS = [
    "the",
    "order",
    "was",
    "sent",
    "lost",
    "refund",
    "good",
    "bad",
    "thank",
    "you",
    "please",
    "wait",
    "again",
    "window",
    "door",
    "table",
    "yes",
    "no",
]


@dataclass(frozen=True, slots=True)
class CheckSize:
    """pairs of trajectories of about `words` words, for a decoder of this width and number of layers."""

    width: int = 1024
    layers: int = 16
    heads: int = 16
    vocabulary: int = 16_384
    pairs: int = 64
    words: int = 700


def comparisons(size: CheckSize) -> list[PreferenceRecord]:
    """Two answers to each task, which share the task and the first half of the agent's words."""
    records = []
    for task in range(size.pairs):
        generator = torch.Generator().manual_seed(task)
        drawn = torch.randint(len(_WORDS), (3, max(2, size.words // 2)), generator=generator).tolist()
        shared, *ends = (" ".join(_WORDS[place] for place in row) for row in drawn)
        sides = [
            _answer(task, shared, f"{end} {last}") for end, last in zip(ends, ("good", "bad"), strict=True)
        ]
        records.append(
            PreferenceRecord(a=sides[0], b=sides[1], choice="a", annotator="check", origin="simulated")
        )
    return records


def _answer(task: int, shared: str, end: str) -> Trajectory:
    texts = (("user", f"task {task}"), ("agent", shared), ("user", "go on"), ("agent", end))
    steps = tuple(Step(source=source, message=(Part(text=text),)) for source, text in texts)  # type: ignore[arg-type]
    return Trajectory(steps=steps, task=Task(id=f"task-{task}"))


def decoder_folder(folder: Path, size: CheckSize) -> Path:
    return save_decoder(
        folder / "base",
        [*_WORDS, "task 0123456789", "go on"],
        vocabulary=size.vocabulary,
        width=size.width,
        layers=size.layers,
        heads=size.heads,
    )


def check_recipe(base: Path, **values: Any) -> Recipe:
    fixed = {"backbone": "decoder", "decoder": str(base), "max_tokens": 4096, "centring": 0.0}
    return parse_recipe(fixed | {"batch_tokens": 1_000_000} | values)


def run_losses(
    folder: Path, records: list[PreferenceRecord], recipe: Recipe, device: str, processes: int
) -> list[float]:
    """The validation losses of `python -m workers.train`."""
    (folder / "data").mkdir(parents=True)
    third = max(1, len(records) // 3)
    parts = {"train": records[2 * third :], "validation": records[:third], "test": records[third : 2 * third]}
    for split, some in parts.items():
        write_records(folder / "data" / f"{split}.jsonl.zst", some)
    config = {"recipe": recipe_to_dict(recipe), "seed": 1, "device": device}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return _train(folder, processes)


def resumed_losses(folder: Path, processes: int) -> list[float]:
    """Of a complete run that goes on from its last checkpoint but one: what it measured before, and then again."""
    max((folder / "checkpoints").glob("step-*.pt")).unlink()
    (folder / "manifest.json").unlink()
    losses = _train(folder, processes)
    if "resumed from the checkpoint" not in (folder / "events.jsonl").read_text(encoding="utf-8"):
        raise RuntimeError("the run did not go on from a checkpoint")
    return losses


def _train(folder: Path, processes: int) -> list[float]:
    command = [sys.executable, "-m", "workers.train", str(folder), "--processes", str(processes)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if ended.returncode:
        raise RuntimeError(f"{processes} processes ended with {ended.returncode}: {ended.stderr[-300:]}")
    events = map(json.loads, (folder / "events.jsonl").read_text(encoding="utf-8").splitlines())
    return [event["validation"]["loss"] for event in events if event.get("validation")]
