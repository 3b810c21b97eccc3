"""Two small reward models, the rewards they give by the engine alone, and the weights of an uninterrupted run."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.prepare import TASKS, pairs, trajectory
from tests.faults.stack import ROOT
from workers.schema import PreferenceRecord, Task, Trajectory, parse_item, write_records

RECIPE: dict[str, Any] = {  # some seconds on one core, a checkpoint twice a second
    "epochs": 16,
    "patience": 0,
    "batch_pairs": 8,
    "width": 64,
    "chunk_tokens": 64,
    "checkpoint_seconds": 0.5,
    "evaluations_per_epoch": 1,
}
ITEMS = [
    {"prompt": record["prompt"], "response": record["response"]}
    for record in (trajectory(task, run) for task in range(TASKS) for run in (0, 3))
]
_SCORE = """
import json, sys
from pathlib import Path
from workers.models import load
from workers.schema import parse_item
items = [parse_item(entry).content for entry in json.load(sys.stdin)]
def scored(model):
    rendered = [model.render(item) for item in items]
    return [(score.raw - model.median) / model.std for item in rendered for score in model.score([item])]
"""
_SCORE_ONE = _SCORE + "print(json.dumps(scored(load(Path(sys.argv[1]), device='cpu'))))"
_TRAIN_AND_SCORE = f"""{_SCORE}
from workers.train.pipeline import train
found = {{}}
for run in map(Path, sys.argv[1:]):
    train(run)
    found[run.name] = scored(load(run / "model", device="cpu"))
print(json.dumps(found))
"""


def train(folder: Path, data: Path, recipe: dict[str, Any], seed: int) -> Path:
    """An uninterrupted run outside of any installation; its artifact."""
    _write_run(folder, data, recipe, seed)
    _python("-m", "workers.train", str(folder))
    return folder / "model"


def rewards_of(model: Path, items: list[dict[str, Any]]) -> list[float]:
    """Scored one by one, offline: what every answer is compared with."""
    found: list[float] = json.loads(_python("-c", _SCORE_ONE, str(model), said=json.dumps(items)))
    return found


def make_models(folder: Path) -> dict[str, list[float]]:
    """Artifacts `a` and `b` in `folder`, made once however many ask at once, and their rewards for ITEMS."""
    kept = folder / "rewards.json"
    with alone(folder):
        if not kept.exists():
            _write_data(folder / "data")
            for seed, name in enumerate("ab", start=1):
                recipe = RECIPE | {"epochs": 2, "checkpoint_seconds": 30.0, "ensemble": 3 + seed}
                _write_run(folder / "runs" / name, folder / "data", recipe, seed)
            runs = [str(folder / "runs" / name) for name in "ab"]
            said = _python("-c", _TRAIN_AND_SCORE, *runs, said=json.dumps(ITEMS))
            for name in "ab":
                shutil.copytree(folder / "runs" / name / "model", folder / name)
            kept.write_text(said)
    rewards: dict[str, list[float]] = json.loads(kept.read_text())
    return rewards


def reference_of(folder: Path, snapshot: str, data: Path) -> Path:
    """The model of an uninterrupted run. The same judgements give the same snapshot, so one stands for all."""
    run = folder / f"reference-{snapshot[:16]}"
    with alone(folder):
        return run / "model" if run.exists() else train(run, data, RECIPE, seed=7)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No one else who asks for it is within for this folder."""
    with (folder / ".alone").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write_run(folder: Path, data: Path, recipe: dict[str, Any], seed: int) -> None:
    folder.mkdir(parents=True)
    shutil.copytree(data, folder / "data")
    (folder / "config.json").write_text(json.dumps({"recipe": recipe, "seed": seed, "device": "auto"}))


def _write_data(folder: Path) -> None:
    """The judgements of an installation as a run directory has them: the last tasks are for validation and test."""
    splits: dict[str, list[PreferenceRecord]] = {"train": [], "validation": [], "test": []}
    for said in pairs():
        task = Task(id=said["task"]["id"])
        a, b = (parse_item(said[side], task=task).content for side in ("a", "b"))
        assert isinstance(a, Trajectory) and isinstance(b, Trajectory)
        number = int(task.id.removeprefix("task-"))
        split = "train" if number < TASKS - 6 else "validation" if number < TASKS - 3 else "test"
        splits[split].append(PreferenceRecord(annotator=said["annotator"], a=a, b=b, choice=said["choice"]))
    folder.mkdir(parents=True)
    for split, records in splits.items():
        write_records(folder / f"{split}.jsonl.zst", records)


def _python(*arguments: str, said: str = "") -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
