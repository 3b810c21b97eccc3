"""A run's events in trackers: the real libraries, writing to a folder."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from workers.errors import RewardError
from workers.train import trackers as module
from workers.train.trackers import points, track

EVENTS = [
    {"message": "encoded 10 chunks"},
    {"step": 1, "loss": 0.75, "learning_rate": 0.001, "pairs_per_second": 20.0, "progress": {"done": 1}},
    {"step": 2, "loss": 0.5, "validation": {"loss": 0.625, "bradley_terry accuracy": 0.75}},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run-7"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"recipe": {"epochs": 3, "criterion": None}}))
    (folder / "events.jsonl").write_text(
        "".join(json.dumps(event) + "\n" for event in EVENTS) + '{"step": 3, "lo'
    )
    return folder


def test_points() -> None:
    assert points(EVENTS[0]) is None
    assert points(EVENTS[1]) == (1, {"loss": 0.75, "learning_rate": 0.001, "pairs_per_second": 20.0})
    assert points(EVENTS[2]) == (
        2,
        {"loss": 0.5, "validation/loss": 0.625, "validation/bradley_terry_accuracy": 0.75},
    )
    assert points({"step": 4, "validation": None}) is None


def test_tensorboard(run: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert track(run, to="tensorboard", into=tmp_path) == 2
    read = EventAccumulator(str(tmp_path / "run-7"))
    read.Reload()
    assert [(scalar.step, scalar.value) for scalar in read.Scalars("loss")] == [(1, 0.75), (2, 0.5)]
    assert [scalar.value for scalar in read.Scalars("validation/loss")] == [0.625]


def test_mlflow(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    assert track(run, to="mlflow", into=tmp_path / "mlruns") == 2
    (losses,) = (tmp_path / "mlruns").glob("*/*/metrics/loss")
    assert [line.split()[1:] for line in losses.read_text().splitlines()] == [["0.75", "1"], ["0.5", "2"]]
    (epochs,) = (tmp_path / "mlruns").glob("*/*/params/epochs")
    assert epochs.read_text() == "3"


@pytest.mark.slow
def test_weights_and_biases(run: Path, tmp_path: Path) -> None:
    """Offline, in a process of its own, as people run it."""
    command = ["-m", "workers.train.trackers", str(run), "--to", "wandb", "--into", str(tmp_path)]
    environment = {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2 steps sent\n"), done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_a_run_that_goes_on_is_followed_to_its_end(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EVERY", 0.01)

    def go_on() -> None:
        with (run / "events.jsonl").open("a") as out:
            out.write('ss": 0.25}\n')
        (run / "manifest.json").write_text("{}")

    timer = threading.Timer(0.3, go_on)
    timer.start()
    assert track(run, to="tensorboard", into=tmp_path, follow=True) == 3


def test_what_cannot_be_tracked_is_told(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RewardError, match=r"is no run directory: it has no config\.json"):
        track(tmp_path, to="tensorboard")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(
        RewardError,
        match=r"mlflow-skinny is not installed for .*: pip install -c constraints.txt mlflow-skinny$",
    ):
        track(run, to="mlflow")
