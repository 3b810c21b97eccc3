"""Following a job on a cluster whose artifact store, engine or hub is away."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.core.processes import core_subprocess
from apps.core.storage import artifacts
from apps.datasets.models import DatasetVersion
from apps.training import runner
from apps.training.launching import cluster_run
from apps.training.launching.cluster_run import ClusterRun, end_job
from apps.training.launching.run_files import StoredRunFiles
from apps.training.launching.state import LaunchedState
from apps.training.models import TrainingRun
from workers.launch.job import Handle, JobLog, JobPhase, JobStatus, LaunchedJob, LauncherUnavailable


class MemoryEngine:
    """A launcher whose jobs do nothing. answers: whether `submit` says that it has taken a job."""

    name, is_remote = "slurm", True

    def __init__(self) -> None:
        self.jobs: dict[str, JobStatus] = {}
        self.answers = True

    def submit(self, job: LaunchedJob) -> Handle:
        self.jobs.setdefault(job.name, JobStatus(JobPhase.RUNNING))
        if not self.answers:
            raise LauncherUnavailable("The engine does not answer.")
        return {"name": job.name}

    def find(self, name: str) -> Handle | None:
        return {"name": name} if name in self.jobs else None

    def poll(self, handle: Handle) -> JobStatus:
        return self.jobs[handle["name"]]

    def cancel(self, handle: Handle) -> None:
        self.jobs[handle["name"]] = JobStatus(JobPhase.CANCELLED)

    def kill(self, handle: Handle) -> None:
        self.cancel(handle)

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        return JobLog(b"", offset)

    def forget(self, handle: Handle) -> None:
        del self.jobs[handle["name"]]

    def check(self) -> str:
        return "answers"


class Store:
    is_away = False


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """What is read and written in the artifact store fails while it is away."""
    found = Store()

    def failing(call: Any) -> Any:
        def called(*arguments: Any) -> Any:
            if found.is_away:
                raise OSError(116, "Stale file handle")
            return call(*arguments)

        return called

    for name in ("file_names", "read_file", "replace_content", "delete_tree"):
        monkeypatch.setattr(artifacts, name, failing(getattr(artifacts, name)))
    return found


@pytest.fixture
def run(dataset_version: DatasetVersion) -> TrainingRun:
    return TrainingRun.objects.create(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe_name="bradley-terry",
        recipe={"encoder": "hub:example/encoder"},
        model_name="desk",
        state=JobState.RUNNING,
        launcher="slurm",
    )


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


@pytest.fixture
def followed(
    run: TrainingRun, engine: MemoryEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ClusterRun:
    monkeypatch.setattr(cluster_run, "MIRROR_SECONDS", 0.0)
    monkeypatch.setattr(cluster_run, "POLL_SECONDS", 0.0)
    (tmp_path / "config.json").write_text(json.dumps({"recipe": {}}))
    return ClusterRun(run, tmp_path, engine, tick=0.0, on_restart=lambda: None)


def launched(run: TrainingRun) -> LaunchedState:
    run.refresh_from_db()
    return LaunchedState.read(run.launched)


def test_a_run_waits_for_its_artifact_store(
    run: TrainingRun, followed: ClusterRun, engine: MemoryEngine, store: Store, tmp_path: Path
) -> None:
    store.is_away = True
    followed.start()
    assert followed.wait() is None
    assert not engine.jobs and not launched(run).is_open
    assert "The artifact store cannot be used now (OSError: [Errno 116]" in launched(run).reason

    store.is_away = False
    assert followed.wait() is None
    (name,) = engine.jobs
    assert StoredRunFiles(run).names("inputs/index") == ["000000001.json"]
    assert launched(run).is_open and launched(run).reason == ""

    files = StoredRunFiles(run)
    files.write("outputs/starts/000001", b"host\n")
    files.write("outputs/events/000001-000000000000-000000000003", b"{}\n")
    files.write("outputs/ends/000001.json", b'{"status": 0, "reason": ""}')
    engine.jobs[name] = JobStatus(JobPhase.SUCCEEDED)
    store.is_away = True
    assert followed.wait() is None
    assert "artifact store" in launched(run).reason and engine.jobs
    store.is_away = False
    assert followed.wait() == core_subprocess.OK
    assert (tmp_path / "events.jsonl").read_bytes() == b"{}\n"
    assert not engine.jobs and not launched(run).is_open and not files.names("inputs/index")


def test_a_job_that_was_submitted_without_an_answer_is_ended(
    run: TrainingRun, followed: ClusterRun, engine: MemoryEngine
) -> None:
    engine.answers = False
    followed.start()
    assert engine.jobs and launched(run).handle is None
    followed.ask_to_stop()
    assert followed.wait() == core_subprocess.CANCELLED
    assert not engine.jobs and not launched(run).is_open


def test_the_job_of_a_run_that_ended_before_its_submission_was_answered(
    run: TrainingRun, followed: ClusterRun, engine: MemoryEngine
) -> None:
    engine.answers = False
    followed.start()
    run.refresh_from_db()
    end_job(run, engine)
    assert not engine.jobs and not launched(run).is_open


def test_a_job_is_taken_up_without_the_inputs_that_it_has(
    run: TrainingRun, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise DomainError("The hub is away.")

    monkeypatch.setattr(runner, "with_folders", away)
    monkeypatch.setattr(runner, "launcher_named", lambda name: engine)
    monkeypatch.setattr(runner, "TICK", 0.0)
    monkeypatch.setattr(cluster_run, "POLL_SECONDS", 0.0)
    engine.jobs["job"] = JobStatus(JobPhase.FAILED, "out of memory")
    run.launched = LaunchedState(submission=1, is_open=True, handle={"name": "job"}).values()
    run.save()
    runner.execute(run)
    assert (run.state, run.error) == (JobState.FAILED, "slurm: out of memory.")
