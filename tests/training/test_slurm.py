"""Trainings through SLURM's commands, on nodes that have no disk in common with the installation."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState, claim_next, request_cancel
from apps.datasets.models import DatasetVersion
from apps.training import runner, services
from apps.training.launching.launchers import launcher_named
from apps.training.launching.run_files import StoredRunFiles
from apps.training.models import ON_CLUSTERS, ON_WORKERS, TrainingRun
from tests.training import cluster
from tests.training.fake_slurm import FakeSlurm
from workers.errors import RewardError
from workers.launch.job import JobPhase, JobResources, LaunchedJob
from workers.launch.slurm import SlurmOptions, batch_script, job_status


@pytest.fixture
def slurm(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    settings.SLURM = dict.fromkeys(settings.SLURM, "") | {
        "python": sys.executable,
        "folder": str(tmp_path),
        "commands": str(tmp_path / "slurm" / "bin"),
    }
    settings.SLURM_SETUP, settings.CLUSTER_GPUS = cluster.SETUP, 0
    cluster.be_quick(monkeypatch)
    return FakeSlurm.install(tmp_path / "slurm")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_preempted_and_lost_jobs_end_with_the_weights_of_an_uninterrupted_run(
    slurm: FakeSlurm, project: Project, settings: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CLUSTER_URL = live_server.url
    dataset_version = cluster.small_dataset(project)
    local = cluster.start(dataset_version)
    assert claim_next(TrainingRun) == local
    local.refresh_from_db()
    runner.execute(local)
    assert local.state == JobState.SUCCEEDED, local.error

    run = cluster.start(dataset_version, on="slurm")
    stopped = threading.Event()
    monkeypatch.setattr("apps.core.jobs.shutdown.is_asked", stopped.is_set)
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    (first,) = slurm.job_ids()
    slurm.preempt(first)  # SLURM starts it again
    cluster.until(lambda: slurm.job(first) and slurm.state(first) == "RUNNING")
    stopped.set()  # the worker stops; the job goes on
    thread.join(20)
    run.refresh_from_db()
    assert run.state == JobState.QUEUED
    stopped.clear()
    thread = cluster.follow()  # another worker
    sent = cluster.checkpoints_sent(run)
    cluster.until(lambda: cluster.checkpoints_sent(run) >= sent)
    slurm.fail_node(first)  # and SLURM does not start it again
    cluster.until(lambda: len(slurm.job_ids()) == 2)
    thread.join(120)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    assert cluster.weights(run) == cluster.weights(local)
    assert run.launched["is_open"] is False
    steps = list(run.events.values_list("data__step", flat=True))
    assert len(steps) >= local.events.count()
    cluster.until(lambda: not list(slurm.folder.glob("node-*/touchstone-*")))


@pytest.mark.parametrize(
    ("state", "exit_code", "phase", "words"),
    [
        ("PENDING", "0:0", JobPhase.PENDING, ""),
        ("RUNNING", "0:0", JobPhase.RUNNING, ""),
        ("COMPLETING", "0:0", JobPhase.RUNNING, ""),
        ("REQUEUED", "0:0", JobPhase.PENDING, ""),
        ("COMPLETED", "0:0", JobPhase.SUCCEEDED, ""),
        ("CANCELLED by 1000", "0:15", JobPhase.CANCELLED, "SLURM reports CANCELLED by 1000, signal 15"),
        ("CANCELLED+", "0:0", JobPhase.CANCELLED, "SLURM reports CANCELLED+"),
        ("FAILED", "2:0", JobPhase.FAILED, "SLURM reports FAILED, exit status 2"),
        ("OUT_OF_MEMORY", "0:125", JobPhase.FAILED, "more memory than it was given"),
        ("NODE_FAIL", "1:0", JobPhase.PREEMPTED, "a node failed"),
        ("TIMEOUT", "0:0", JobPhase.PREEMPTED, "time limit"),
        ("PREEMPTED", "0:15", JobPhase.PREEMPTED, "preempted"),
        ("A_STATE_OF_TOMORROW", "0:0", JobPhase.RUNNING, "A_STATE_OF_TOMORROW"),
    ],
)
def test_states_of_squeue_and_sacct(state: str, exit_code: str, phase: JobPhase, words: str) -> None:
    status = job_status(state, "", exit_code)
    assert status.phase == phase
    assert words in status.reason if words else status.reason == ""


def test_the_script_asks_for_what_the_run_needs_and_holds_no_secret() -> None:
    resources = JobResources(hosts=2, processes=8, gpus=8, cpus=32, memory_gb=400, seconds=3600)
    job = LaunchedJob(
        name="touchstone-x-1-1",
        module="workers.launch",
        arguments=["--hosts", "2"],
        secrets={"TOUCHSTONE_RUN_TOKEN": "secret"},
        resources=resources,
    )
    options = SlurmOptions(
        python="/opt/touch stone/python",
        partition="gpu",
        setup=["module load cuda"],
        container="apptainer exec --nv image.sif",
        directives=["--constraint=a100", "#SBATCH --exclusive"],
    )
    script = batch_script(job, options)
    assert "secret" not in script and "secret" not in repr(job)
    for line in (
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --mem=400G",
        "#SBATCH --time=60",
        "#SBATCH --signal=TERM@300",
        "#SBATCH --requeue",
        "#SBATCH --partition=gpu",
        "#SBATCH --exclusive",
        "module load cuda",
        "exec srun --export=ALL --kill-on-bad-exit=1 --cpus-per-task=32 apptainer exec --nv image.sif "
        "'/opt/touch stone/python' -m workers.launch --hosts 2 --rendezvous \"$head:29400\"",
    ):
        assert line in script.splitlines(), script
    assert "--account" not in script
    with pytest.raises(RewardError, match="is not an option of sbatch"):
        batch_script(job, SlurmOptions(python="python", directives=["rm -rf"]))


def program(folder: Path, text: str, settings: Any) -> None:
    """What nodes run in the place of Python."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    settings.SLURM = settings.SLURM | {"python": str(path)}


def test_a_job_is_submitted_once_asked_to_end_and_known_when_slurm_has_forgotten_it(
    slurm: FakeSlurm, settings: Any, tmp_path: Path
) -> None:
    program(
        tmp_path,
        "trap 'exit 3' TERM; echo $TOUCHSTONE_RUN_TOKEN $2; touch ready; while :; do sleep 0.02; done",
        settings,
    )
    launcher = launcher_named("slurm")
    assert launcher.check() == "slurm 24.05.3 answers"
    job = LaunchedJob(
        name="touchstone-1",
        module="workers.launch",
        arguments=["x"],
        secrets={"TOUCHSTONE_RUN_TOKEN": "a token"},
    )
    assert launcher.find(job.name) is None
    handle = launcher.submit(job)
    assert launcher.submit(job) == handle == launcher.find(job.name)
    cluster.until(lambda: list(slurm.folder.glob("node-*/ready")))
    assert launcher.poll(handle).phase == JobPhase.RUNNING
    launcher.cancel(handle)
    cluster.until(lambda: launcher.poll(handle).phase.is_final)
    assert launcher.logs(handle).content == b"a token workers.launch\n"
    slurm.forget(int(handle["job"]))
    status = launcher.poll(handle)
    assert (status.phase, status.exit_status) == (JobPhase.FAILED, 3)
    launcher.forget(handle)
    launcher.kill({"job": "999", "name": "x"})
    settings.SLURM = settings.SLURM | {"commands": str(tmp_path / "elsewhere")}
    with pytest.raises(RewardError, match="TOUCHSTONE_SLURM_COMMANDS"):
        launcher_named("slurm").check()


@pytest.fixture
def claimed(dataset_version: DatasetVersion, slurm: FakeSlurm) -> TrainingRun:
    run = cluster.start(dataset_version, on="slurm")
    assert claim_next(TrainingRun, ON_WORKERS) is None  # no worker trains it itself
    assert claim_next(TrainingRun, ON_CLUSTERS) == run
    run.refresh_from_db()
    return run


def test_a_job_that_fails_is_reported_with_its_last_lines(
    claimed: TrainingRun, settings: Any, tmp_path: Path
) -> None:
    program(tmp_path, "echo 'No module named workers' >&2; exit 1", settings)
    runner.execute(claimed)
    assert claimed.state == JobState.FAILED
    assert claimed.error == (
        "slurm: SLURM reports FAILED, exit status 1. Its last lines: No module named workers"
    )
    assert "No module named workers" in claimed.log_tail
    assert not StoredRunFiles(claimed).names("inputs/index")  # records do not outlive their dataset


def test_what_slurm_refuses_is_the_error_of_the_run(claimed: TrainingRun, settings: Any) -> None:
    settings.SLURM = settings.SLURM | {"partition": "none"}
    runner.execute(claimed)
    assert claimed.state == JobState.FAILED
    assert "sbatch failed: sbatch: error: invalid partition specified: none" in claimed.error


def test_a_worker_killed_while_it_submits_leaves_one_job(
    claimed: TrainingRun, slurm: FakeSlurm, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "trap 'exit 3' TERM; while :; do sleep 0.02; done", settings)
    record = services.record_launched

    def record_launched(*, run: TrainingRun, launched: dict[str, Any]) -> None:
        if launched["handle"] is not None:
            raise OperationalError("the connection is closed")
        record(run=run, launched=launched)

    with monkeypatch.context() as patched:
        patched.setattr(services, "record_launched", record_launched)
        with pytest.raises(OperationalError):
            runner.execute(claimed)
    request_cancel(claimed)
    runner.execute(TrainingRun.objects.get(pk=claimed.pk))  # the next worker
    claimed.refresh_from_db()
    assert claimed.state == JobState.CANCELLED
    assert len(slurm.job_ids()) == 1


def test_jobs_that_bring_no_checkpoint_are_not_submitted_forever(
    claimed: TrainingRun, slurm: FakeSlurm, settings: Any, tmp_path: Path
) -> None:
    program(tmp_path, 'scancel --node-fail "$SLURM_JOB_ID"; sleep 60', settings)
    runner.execute(claimed)
    assert claimed.state == JobState.FAILED
    assert "ended 3 times in a row before it had written a new checkpoint (a node failed" in claimed.error
    assert len(slurm.job_ids()) == 3


def test_what_is_not_set_up_is_not_offered(dataset_version: DatasetVersion, settings: Any) -> None:
    settings.SLURM = settings.SLURM | {"python": ""}
    with pytest.raises(DomainError, match="SLURM is not set up: set TOUCHSTONE_SLURM_PYTHON"):
        cluster.start(dataset_version, on="slurm")
    with pytest.raises(DomainError, match="take one of local, slurm"):
        cluster.start(dataset_version, on="cloud")
    with pytest.raises(DomainError, match="hosts and gpus are for clusters"):
        cluster.start(dataset_version, hosts=2)
