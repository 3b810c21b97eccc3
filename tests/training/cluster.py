"""Runs on clusters in tests: a small training that takes a while, and its weights where it was not interrupted."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

from apps.accounts.models import Project
from apps.core.storage.artifacts import stage
from apps.datasets.models import DatasetVersion
from apps.training import services
from apps.training.launching import cluster_run, followers
from apps.training.launching.run_files import StoredRunFiles
from apps.training.models import RewardModel, TrainingRun
from apps.training.selectors import events_after
from tests.datasets.feedback import freeze, import_pairs, pair

ROOT = Path(__file__).parents[2]
RECIPE: dict[str, Any] = {
    "epochs": 60,
    "patience": 0,
    "batch_pairs": 4,
    "width": 32,
    "chunk_tokens": 64,
    "checkpoint_seconds": 0.2,
    "evaluations_per_epoch": 1,
}
SETUP = [f"export PYTHONPATH={ROOT}", "export OMP_NUM_THREADS=1"]


def small_dataset(project: Project) -> DatasetVersion:
    import_pairs(project, [pair(f"task-{n}") for n in range(24)])
    return freeze(project)


def start(
    dataset_version: DatasetVersion, *, recipe: dict[str, Any] | None = None, **options: Any
) -> TrainingRun:
    return services.start_run(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe=RECIPE | (recipe or {}),
        name="polite",
        seed=7,
        by=None,
        **options,
    )


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_run, "MIRROR_SECONDS", 0.2)
    monkeypatch.setattr(cluster_run, "POLL_SECONDS", 0.2)


def follow() -> threading.Thread:
    (thread,) = followers.follow_waiting()
    return thread


def until(true: Callable[[], Any], seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def checkpoints_sent(run: TrainingRun) -> int:
    return len(StoredRunFiles(run).names("outputs/index"))


def weights(run: TrainingRun) -> dict[str, bytes]:
    """By file."""
    model = RewardModel.objects.get(training_run=run)
    found = {path.name: path.read_bytes() for path in stage(model.artifact).glob("*.safetensors")}
    assert found
    return found


def losses(run: TrainingRun) -> list[float]:
    return [event["loss"] for event in events_after(run) if "loss" in event]


def assert_close(run: TrainingRun, other: TrainingRun) -> None:
    """Two processes sum gradients in another order than one."""
    assert losses(run) == pytest.approx(losses(other), abs=1e-5)
    mine, theirs = weights(run), weights(other)
    for name in mine:
        for key, tensor in load(mine[name]).items():
            np.testing.assert_allclose(tensor, load(theirs[name])[key], rtol=1e-3, atol=5e-4)
