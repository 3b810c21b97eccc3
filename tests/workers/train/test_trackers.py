"""A run's events in trackers: the real libraries, writing to a folder or to a server of their own."""

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.workers.train.mlflow_server import mlflow_command, running_mlflow_server
from workers.errors import RewardError
from workers.train.trackers import session as module
from workers.train.trackers.command import track
from workers.train.trackers.session import RunEnd, TrackingSession, run_end, web_address, without_secrets
from workers.train.trackers.tracker import RunDescription, Tracker, event_point

EVENTS = [
    {"message": "encoded 10 chunks"},
    {"step": 1, "loss": 0.75, "learning_rate": 0.001, "pairs_per_second": 20.0, "progress": {"done": 1}},
    {"step": 2, "loss": 0.5, "validation": {"loss": 0.625, "bradley_terry accuracy": 0.75}},
]
REPORT = {"preference": {"accuracy": 0.75, "n": 40, "verdict": "ok"}, "train": {"steps": 2}, "seconds": 3.0}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run-7"
    (folder / "model").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"recipe": {"epochs": 3, "criterion": None}, "seed": 5}))
    (folder / "events.jsonl").write_text(
        "".join(json.dumps(event) + "\n" for event in EVENTS) + '{"step": 3, "lo'
    )
    (folder / "model" / "touchstone.json").write_text('{"objective": "bradley_terry"}')
    (folder / "model" / "model.safetensors").write_bytes(b"weights")
    (folder / "report.json").write_text(json.dumps(REPORT))
    return folder


def described(run: Path, **more: Any) -> None:
    (run / "tracking").mkdir(exist_ok=True)
    given = {"name": "desk-run-7", "parameters": {"epochs": 3, "seed": 5}, **more}
    (run / "tracking" / "description.json").write_text(json.dumps(given))


def ended(run: Path, state: str, error: str = "") -> None:
    (run / "tracking" / "end.json").write_text(json.dumps({"state": state, "error": error}))


class RecordingTracker(Tracker):
    """Keeps what it is told; fails as often as `failures` says."""

    def __init__(self, description: RunDescription, into: Path | None) -> None:
        self.told: list[Any] = [description]
        self.id, self.url = "an-id", "https://user:secret@tracker.example/runs/1"
        self.failures = 0

    def log(self, points: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route to https://user:secret@tracker.example")
        self.told.append([step for step, _ in points])

    def log_file(self, path: Path, name: str) -> None:
        self.told.append(name)

    def end(self, state: str, error: str) -> None:
        self.told.append((state, error))


def test_points() -> None:
    assert event_point(EVENTS[0]) is None
    assert event_point(EVENTS[1]) == (1, {"loss": 0.75, "learning_rate": 0.001, "pairs_per_second": 20.0})
    assert event_point(EVENTS[2]) == (
        2,
        {"loss": 0.5, "validation/loss": 0.625, "validation/bradley_terry_accuracy": 0.75},
    )
    assert event_point({"step": 4, "validation": None}) is None


def test_tensorboard(run: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (run / "manifest.json").write_text("{}")
    assert track(run, to="tensorboard", into=tmp_path / "board") == 2
    read = EventAccumulator(str(tmp_path / "board" / "run-7"))
    read.Reload()
    assert [(scalar.step, scalar.value) for scalar in read.Scalars("loss")] == [(1, 0.75), (2, 0.5)]
    assert [scalar.value for scalar in read.Scalars("validation/loss")] == [0.625]
    assert [(scalar.step, scalar.value) for scalar in read.Scalars("test/preference/accuracy")] == [(2, 0.75)]
    assert {"recipe/text_summary", "report.json/text_summary", "state/text_summary"} <= {
        *read.Tags()["tensors"]
    }


def test_mlflow_with_its_file_store(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server, through MLflow's own client; that of a failed run with its error."""
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    described(run, project="experiment", parameters={"epochs": 3, "joint_weights": {"process": 1.0}})
    ended(run, "failed", "The disk is full.")
    assert track(run, to="mlflow", into=tmp_path / "mlruns") == 2
    client = MlflowClient((tmp_path / "mlruns").resolve().as_uri())
    experiment = client.get_experiment_by_name("experiment")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.status, found.info.run_name) == ("FAILED", "desk-run-7")
    assert found.data.params == {"epochs": "3", "joint_weights": '{"process": 1.0}'}
    assert [(m.step, m.value) for m in client.get_metric_history(found.info.run_id, "loss")] == [
        (1, 0.75),
        (2, 0.5),
    ]
    assert found.data.tags["touchstone.error"] == "The disk is full."
    assert not client.list_artifacts(found.info.run_id)


@pytest.mark.long
@pytest.mark.skipif(mlflow_command() is None, reason="needs the server of MLflow (`make install-dev`)")
def test_mlflow_with_a_real_server(run: Path, tmp_path: Path) -> None:
    """A run that is interrupted, continued and succeeds is one run of the server, with its artifacts."""
    from mlflow import MlflowClient

    with running_mlflow_server(tmp_path / "server") as address:
        described(
            run, project="desk models", tags={"touchstone.page": "http://localhost/p/desk/1"}, weights=True
        )
        ended(run, "interrupted")
        command = [sys.executable, "-m", "workers.train.trackers", str(run), "--to", "mlflow", "--follow"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MLFLOW_TRACKING_URI": address}

        def send(expected: str) -> dict[str, Any]:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=120, env=environment, check=False
            )
            assert (done.returncode, done.stdout.splitlines()[-1]) == (0, expected), done.stderr
            state: dict[str, Any] = json.loads((run / "tracking" / "mlflow.json").read_text())
            return state

        first = send("2 steps sent")
        client = MlflowClient(address)
        assert client.get_run(first["id"]).info.status == "RUNNING"
        with (run / "events.jsonl").open("a") as out:
            out.write('ss": 0.25}\n')
        ended(run, "succeeded")
        last = send("1 steps sent")
        assert (last["id"], last["problem"], last["state"]) == (first["id"], "", "succeeded")
        found = client.get_run(last["id"])
        experiment = client.get_experiment_by_name("desk models")
        assert experiment is not None
        assert last["url"] == f"{address}/#/experiments/{experiment.experiment_id}/runs/{last['id']}"
        assert found.info.status == "FINISHED"
        assert [m.value for m in client.get_metric_history(last["id"], "loss")] == [0.75, 0.5, 0.25]
        assert found.data.params == {"epochs": "3", "seed": "5"}
        assert found.data.metrics["test/preference/accuracy"] == 0.75
        assert found.data.tags["touchstone.page"] == "http://localhost/p/desk/1"
        files = [
            each.path for folder in (None, "model") for each in client.list_artifacts(last["id"], folder)
        ]
        assert files == ["model", "report.json", "model/model.safetensors", "model/touchstone.json"]


@pytest.mark.slow
def test_weights_and_biases(run: Path, tmp_path: Path) -> None:
    """Offline, in a process of its own, as people run it."""
    (run / "manifest.json").write_text("{}")
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


def test_annotators_are_not_named_to_trackers(run: Path, tmp_path: Path) -> None:
    ann, ben = "ann@example.com", "ben@example.com"
    told = {
        **REPORT,
        "annotators": {"n": 3},
        "mistakes": [{"task": "t", "annotator": ben}, {"task": "u", "annotator": ann}],
        "train": {"steps": 2, "reliabilities": {ann: 0.9, ben: 0.4}, "adversaries": [ben]},
    }
    (run / "report.json").write_text(json.dumps(told))
    (run / "manifest.json").write_text("{}")
    files: dict[str, str] = {}

    class Keeping(RecordingTracker):
        def log_file(self, path: Path, name: str) -> None:
            files[name] = path.read_text()
            assert path.name == name.rpartition("/")[2]  # MLflow takes the name of the file

    TrackingSession(run, "mlflow", Keeping).send()
    assert "@" not in "".join(files.values())
    sent = json.loads(files["report.json"])
    assert sent["mistakes"] == [
        {"task": "t", "annotator": "annotator 2"},
        {"task": "u", "annotator": "annotator 1"},
    ]
    train = {"steps": 2, "reliabilities": {"annotator 1": 0.9, "annotator 2": 0.4}}
    assert sent["train"] == {**train, "adversaries": ["annotator 2"]}
    assert (sent["annotators"], sent["preference"]) == ({"n": 3}, REPORT["preference"])
    track(run, to="tensorboard", into=tmp_path / "board")
    assert all(b"@example" not in path.read_bytes() for path in (tmp_path / "board").rglob("*tfevents*"))
    assert json.loads((run / "report.json").read_text()) == told


@pytest.mark.skipif(find_spec("trackio") is None, reason="needs Trackio, which no extra installs")
def test_trackio(run: Path, tmp_path: Path) -> None:
    (run / "manifest.json").write_text("{}")
    assert track(run, to="trackio", into=tmp_path / "trackio") == 2
    assert list((tmp_path / "trackio").glob("*.db"))


def test_a_run_that_goes_on_is_followed_to_its_end(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)

    def go_on() -> None:
        with (run / "events.jsonl").open("a") as out:
            out.write('ss": 0.25}\n')
        (run / "manifest.json").write_text("{}")

    timer = threading.Timer(0.2, go_on)
    timer.start()
    session = TrackingSession(run, "mlflow", RecordingTracker)
    assert session.follow() == 3
    told = session._tracker.told  # type: ignore[union-attr]
    assert told[0].parameters == {"epochs": 3, "criterion": None, "seed": 5}
    assert told[1:] == [[1, 2], [3], [2], "report.json", "model/touchstone.json", ("succeeded", "")]
    assert session.state.url == "https://tracker.example/runs/1"


def test_a_tracker_that_fails_is_tried_again_and_its_problem_named(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01, 0.02))
    described(run)
    ended(run, "cancelled")
    problems = []

    class Failing(RecordingTracker):
        def __init__(self, description: RunDescription, into: Path | None) -> None:
            super().__init__(description, into)
            self.failures = 2

        def log(self, points: Any) -> None:
            problems.append(json.loads((run / "tracking" / "mlflow.json").read_text())["problem"])
            super().log(points)

    session = TrackingSession(run, "mlflow", Failing)
    assert session.follow() == 2
    sentence = "ConnectionError: no route to https://[redacted]@tracker.example"
    assert problems == ["", sentence, sentence]
    assert (session.state.problem, session.state.state) == ("", "cancelled")
    assert session._tracker.told[1:] == [[1, 2], ("cancelled", "")]  # type: ignore[union-attr]
    assert capsys.readouterr().err == f"{sentence}\n"


def test_a_tracker_that_stays_away_is_given_up_after_the_end(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(module, "_LAST_TRIES_SECONDS", 0.05)
    described(run)
    ended(run, "succeeded")

    def refused(description: RunDescription, into: Path | None) -> Tracker:
        raise OSError(28, "No space left on device")

    with pytest.raises(RewardError, match="No space left on device"):
        TrackingSession(run, "mlflow", refused).follow()
    state = json.loads((run / "tracking" / "mlflow.json").read_text())
    assert (state["offset"], "No space left" in state["problem"]) == (0, True)


def test_how_a_run_ended(run: Path) -> None:
    assert run_end(run) is None
    (run / "error.json").write_text('{"message": "too few pairs."}')
    assert run_end(run) == RunEnd("failed", "too few pairs.")
    described(run)
    assert run_end(run) is None  # its starter says it
    ended(run, "cancelled")
    assert run_end(run) == RunEnd("cancelled")


def test_addresses_and_secrets() -> None:
    assert web_address("http://user:pw@mlflow.example:5000/#/runs/1") == "http://mlflow.example:5000/#/runs/1"
    assert web_address("https://a.example/x?write_token=hush#/run?key=hush") == "https://a.example/x#/run"
    for bad in ("javascript:alert(1)", "file:///etc/passwd", "http://", "http://a\n.example", "http://[::1"):
        assert web_address(bad) == ""
    environment = {
        "WANDB_API_KEY": "abcdef123",
        "WANDB_MODE": "online",
        "SHORT_KEY": "on",
        "TOUCHSTONE_TRACKER_VARIABLES": "AWS_ID,OTHER",
        "AWS_ID": "AKIA99",
    }
    for text, expected in {
        "key abcdef123 of https://a:b@c is online": "key [redacted] of https://[redacted]@c is online",
        "https://a:p@ss/w@c/x": "https://[redacted]@c/x",
        "GET /?write_token=hu.sh&step=3 failed": "GET /?write_token=[redacted]&step=3 failed",
        "http://c/?API_KEY=h#x": "http://c/?API_KEY=[redacted]#x",
        "no bucket for AKIA99": "no bucket for [redacted]",
    }.items():
        assert without_secrets(text, environment) == expected


def test_the_final_state_is_sent_whatever_becomes_of_the_files_and_nothing_twice(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.01, 0.02))
    described(run)
    ended(run, "succeeded")
    told: list[Any] = []

    class WithoutStorage(RecordingTracker):
        def __init__(self, description: RunDescription, into: Path | None) -> None:
            super().__init__(description, into)
            self.told, self.id = told, "an\0-id"
            told.append(description.resume_id)

        def log_file(self, path: Path, name: str) -> None:
            if name == "report.json" and "an-id" not in told:
                raise OSError("the bucket\0 does not\texist")
            super().log_file(path, name)

    session = TrackingSession(run, "mlflow", WithoutStorage)
    problems: list[str] = []
    monkeypatch.setattr(session, "_wait", lambda *_: problems.append(session.state.problem))
    assert session.follow() == 2
    assert problems == ["OSError: the bucket does not exist"]
    first = ["", [1, 2], [2], "model/touchstone.json", ("succeeded", "")]
    assert told == [*first, "an-id", "report.json", ("succeeded", "")]
    assert (session.state.state, session.state.problem) == ("succeeded", "")


def test_what_cannot_be_tracked_is_told(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RewardError, match=r"is no run directory: it has no config\.json"):
        track(tmp_path, to="tensorboard")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(RewardError, match="MLFLOW_TRACKING_URI is not set in the environment of the worker"):
        track(run, to="mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(
        RewardError,
        match=r"mlflow-skinny is not installed for .*: pip install -c constraints.txt mlflow-skinny$",
    ):
        track(run, to="mlflow")
