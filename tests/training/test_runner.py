import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from apps.core.jobs.job_queue import ClaimLost, JobState, claim_next, request_cancel, work
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import stage
from apps.datasets.models import DatasetVersion
from apps.training import runner, services, tasks
from apps.training.models import RewardModel, TrainingRun
from apps.training.selectors import events_after, run_folder
from tests.training import fake_child as child

pytestmark = [pytest.mark.usefixtures("fake_child")]


def claimed(dataset_version: DatasetVersion, behaviour: float = child.COMPLETE) -> TrainingRun:
    services.start_run(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe={"label_smoothing": behaviour},
        name="polite",
        by=None,
    )
    run = claim_next(TrainingRun)
    assert run is not None
    return run


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_that_goes_well_becomes_a_model(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version)
    runner.execute(run)
    model = RewardModel.objects.get()
    assert (str(model), model.training_run, model.manifest["objective"]) == (
        "desk/polite@1",
        run,
        "bradley_terry",
    )
    assert (stage(model.artifact) / "model.safetensors").read_bytes() == b"weights"
    run.refresh_from_db()
    assert (run.state, run.report, run.error) == (JobState.SUCCEEDED, child.REPORT, "")
    assert [event["step"] for event in events_after(run)] == [1, 2, 3]
    assert run.log_tail == "three steps done\n"


def test_the_child_gets_data_and_config_but_no_secret(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run = claimed(dataset_version)
    folder = run_folder(run)
    runner.prepare(run, folder)
    for split in ("train", "validation", "test"):
        assert (folder / "data" / f"{split}.jsonl.zst").read_bytes() == (
            stage(dataset_version.artifact) / f"{split}.jsonl.zst"
        ).read_bytes()
    runner.execute(run)
    seen = json.loads((folder / "environment.json").read_text())
    assert seen["OMP_NUM_THREADS"] == "1"
    assert not {"DATABASE_URL", "CELERY_BROKER_URL", "TOUCHSTONE_HOME", "HF_TOKEN"} & seen.keys()
    assert "secret" not in json.dumps(seen)
    config = json.loads((folder / "config.json").read_text())
    assert (config["recipe"], config["seed"], config["attempt"]) == (run.recipe, run.seed, 1)


@pytest.mark.parametrize("behaviour", [child.COMPLETE, child.REFUSE, child.CRASH])
def test_what_people_said_does_not_stay_beside_a_run(
    dataset_version: DatasetVersion, behaviour: float
) -> None:
    """Else it would outlive a dataset version that was withdrawn."""
    run = claimed(dataset_version, behaviour)
    folder = run_folder(run)
    runner.prepare(run, folder)
    (folder / "hard-negatives.jsonl.zst").write_bytes(b"made of what was said")
    runner.execute(run)
    assert not list(folder.rglob("*.zst"))


def test_a_refusal_is_the_childs_sentence(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version, child.REFUSE)
    runner.execute(run)
    assert (run.state, run.error) == (JobState.FAILED, "The training split has one pair; freeze more.")


@pytest.mark.parametrize(
    ("behaviour", "said"), [(child.CRASH, "ended with status 1"), (child.DIE, "was ended by SIGKILL")]
)
def test_a_crash_has_a_reference_and_a_log(
    dataset_version: DatasetVersion, behaviour: float, said: str
) -> None:
    run = claimed(dataset_version, behaviour)
    runner.execute(run)
    assert run.state == JobState.FAILED
    assert said in run.error
    assert "reference" in run.error
    assert "ZeroDivisionError" not in run.error
    assert run.events.count() == 3
    assert not RewardModel.objects.exists()


def test_a_child_stopped_from_outside_can_be_resumed(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version, child.STOP)
    runner.execute(run)
    assert run.state == JobState.FAILED
    assert "Resume continues from the newest checkpoint" in run.error
    services.resume_run(run=run, by=None)
    assert claim_next(TrainingRun) == run


def test_what_an_earlier_attempt_finished_is_not_done_again(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version)
    folder = run_folder(run)
    runner.prepare(run, folder)
    (folder / "model").mkdir()
    (folder / "model" / "touchstone.json").write_text("{}")
    (folder / "report.json").write_text("{}")
    (folder / "manifest.json").write_text("{}")
    runner.execute(run)
    assert run.state == JobState.SUCCEEDED
    assert not (folder / "pid").exists()


def test_a_folder_of_another_database_is_not_taken_for_ours(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version)
    folder = run_folder(run)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"run": "run 1 of last year"}')
    (folder / "manifest.json").write_text("{}")
    runner.execute(run)
    assert RewardModel.objects.get().manifest["objective"] == "bradley_terry"
    assert (folder / "pid").exists()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (4, r"^The disk of .*runs.* is full\. Free some space, then resume"),
        (5, "ran out of memory. Lower batch_pairs, batch_tokens"),
    ],
)
def test_a_machine_that_is_too_small_is_said_in_words(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    monkeypatch.setattr(runner, "_watch", lambda run, folder, trackers: status)
    run = claimed(dataset_version)
    runner.execute(run)
    assert run.state == JobState.FAILED
    assert re.search(words, run.error)


def test_a_full_disk_before_the_child_is_started_is_said_in_words(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "data")

    monkeypatch.setattr(runner, "prepare", full)
    run = claimed(dataset_version)
    runner.execute(run)
    assert run.state == JobState.FAILED
    assert f"The disk of {run_folder(run)} is full." in run.error and "Resume" in run.error


def test_a_bug_of_ours_fails_the_run_with_a_reference(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: TrainingRun, folder: Path, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(runner, "prepare", broken)
    run = claimed(dataset_version)
    work(run, runner.execute)
    run.refresh_from_db()
    assert run.state == JobState.FAILED
    assert "the log has it under" in run.error


def test_a_worker_takes_one_run_after_the_other(dataset_version: DatasetVersion) -> None:
    for _ in range(2):
        services.start_run(
            project=dataset_version.project, dataset_version=dataset_version, recipe="bradley-terry", by=None
        )
    tasks.advance_runs()
    assert list(TrainingRun.objects.values_list("state", flat=True)) == [JobState.SUCCEEDED] * 2
    assert sorted(RewardModel.objects.values_list("version", flat=True)) == [1, 2]


def in_background(
    run: TrainingRun, *, by: Callable[[TrainingRun], object] = runner.execute
) -> tuple[threading.Thread, list[BaseException]]:
    """The run executed as a worker of its own would."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            by(run)
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    until((run_folder(run) / "pid").exists)
    return thread, raised


@pytest.mark.django_db(transaction=True)
class TestWhileItRuns:
    def test_cancel_lets_the_child_write_a_checkpoint_and_resume_goes_on(
        self, dataset_version: DatasetVersion
    ) -> None:
        run = claimed(dataset_version, child.WAIT)
        thread, raised = in_background(run)
        until(lambda: run.events.count() == 3)
        request_cancel(TrainingRun.objects.get(pk=run.pk))
        thread.join(20)
        assert not raised
        run.refresh_from_db()
        assert (run.state, run.error) == (JobState.CANCELLED, "")
        assert (run_folder(run) / "checkpoints" / "last").exists()
        services.resume_run(run=run, by=None)
        tasks.advance_runs()
        run.refresh_from_db()
        assert (run.state, run.attempt) == (JobState.SUCCEEDED, 2)
        assert RewardModel.objects.get().training_run == run

    def test_a_worker_that_stops_has_a_checkpoint_written_and_gives_the_run_back(
        self, dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, asked = claimed(dataset_version, child.WAIT), threading.Event()
        monkeypatch.setattr("apps.core.jobs.shutdown.is_asked", asked.is_set)
        thread, raised = in_background(run, by=lambda run: work(run, runner.execute))
        until(lambda: run.events.count() == 3)
        asked.set()
        thread.join(20)
        assert not raised
        run.refresh_from_db()
        assert (run.state, run.attempt, run.lost, run.error) == (JobState.QUEUED, 1, 0, "")
        assert (run_folder(run) / "checkpoints" / "last").exists()
        asked.clear()
        tasks.advance_runs()
        run.refresh_from_db()
        assert (run.state, run.attempt) == (JobState.SUCCEEDED, 2)

    def test_training_goes_on_while_the_database_is_away(
        self, dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, away, refused = claimed(dataset_version, child.WAIT), threading.Event(), []
        record = services.record_events

        def record_events(**kwargs: Any) -> None:
            if away.is_set():
                refused.append(kwargs["events"])
                raise OperationalError("the connection is closed")
            record(**kwargs)

        monkeypatch.setattr(services, "record_events", record_events)
        away.set()
        thread, raised = in_background(run)
        pid = int((run_folder(run) / "pid").read_text())
        until(lambda: len(refused) > 2)
        assert is_alive(pid)
        away.clear()
        until(lambda: run.events.count() == 3)  # what was said meanwhile is not lost
        request_cancel(TrainingRun.objects.get(pk=run.pk))
        thread.join(20)
        assert not raised

    def test_a_child_whose_worker_hangs_is_ended_by_the_next_attempt(
        self, dataset_version: DatasetVersion
    ) -> None:
        run = claimed(dataset_version, child.COMPLETE)
        folder = run_folder(run)
        folder.mkdir(parents=True)
        holder = (
            "import sys, time; from pathlib import Path; "
            "from workers.train.run_directory import lock_run_directory\n"
        )
        holder += "with lock_run_directory(Path(sys.argv[2])): print('locked', flush=True); time.sleep(60)"
        command = [sys.executable, "-c", holder, "workers.train", str(folder)]
        old = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert old.stdout is not None and old.stdout.readline() == b"locked\n"
        old.send_signal(signal.SIGSTOP)
        runner.execute(run)
        assert old.wait(10) == -signal.SIGKILL
        old.stdout.close()
        assert run.state == JobState.SUCCEEDED

    def test_a_lost_claim_kills_the_child_and_writes_nothing(self, dataset_version: DatasetVersion) -> None:
        run = claimed(dataset_version, child.WAIT)
        thread, raised = in_background(run)
        pid = int((run_folder(run) / "pid").read_text())
        TrainingRun.objects.filter(pk=run.pk).update(attempt=2)
        thread.join(20)
        assert [type(error) for error in raised] == [ClaimLost]
        assert not is_alive(pid)
        run.refresh_from_db()
        assert (run.state, run.attempt) == (JobState.RUNNING, 2)

    def test_kill_9_of_the_child(self, dataset_version: DatasetVersion) -> None:
        run = claimed(dataset_version, child.WAIT)
        thread, raised = in_background(run)
        os.kill(int((run_folder(run) / "pid").read_text()), signal.SIGKILL)
        thread.join(20)
        assert not raised
        run.refresh_from_db()
        assert run.state == JobState.FAILED
        assert "SIGKILL" in run.error

    def test_the_heart_beats_and_progress_is_shown(self, dataset_version: DatasetVersion) -> None:
        run = claimed(dataset_version, child.WAIT)
        begun = run.heartbeat_at
        thread, _ = in_background(run)
        until(lambda: TrainingRun.objects.get(pk=run.pk).progress.get("done") == 3)
        assert begun is not None
        until(lambda: (TrainingRun.objects.get(pk=run.pk).heartbeat_at or begun) > begun)
        assert TrainingRun.objects.get(pk=run.pk).progress == {"done": 3, "total": 3, "note": "20 pairs/s"}
        request_cancel(TrainingRun.objects.get(pk=run.pk))
        thread.join(20)


def test_how_it_ended_in_words() -> None:
    assert core_subprocess.how_it_ended(1) == "ended with status 1"
    assert core_subprocess.how_it_ended(-15) == "was ended by SIGTERM"


@pytest.mark.parametrize(
    ("recipe", "processes"),
    [
        ("bradley-terry", "4"),
        ("auto", None),  # a search, a fit and a model that writes are each of one process
        ("bradley-terry-linear", None),
        ("bradley-terry-hybrid", None),
    ],
)
def test_processes_are_for_what_can_be_divided(
    dataset_version: DatasetVersion,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    processes: str | None,
) -> None:
    settings.TRAINING_PROCESSES = 4
    run = services.start_run(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe=recipe,
        name="polite",
        by=None,
    )
    started: list[list[str]] = []
    start = core_subprocess.start

    def recorded(module: str, arguments: list[str], **options: Any) -> Any:
        started.append(arguments)
        return start(module, arguments[:1], **options)

    monkeypatch.setattr(core_subprocess, "start", recorded)
    claimed_run = claim_next(TrainingRun)
    assert claimed_run == run
    runner.execute(claimed_run)
    ((_, *more),) = started
    assert more == ([] if processes is None else ["--processes", processes])
