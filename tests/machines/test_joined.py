"""Trainings on a machine that has joined: another process with a home, which reaches the installation by HTTP only."""

import stat
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState, claim_next, request_cancel
from apps.datasets.models import DatasetVersion
from apps.machines.models import Machine, MachineJob
from apps.machines.services import revoke_machine
from apps.training import runner, services
from apps.training.models import TrainingRun
from tests.machines.conftest import JoinedMachines
from tests.training import cluster

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SHORT = {"epochs": 20, "checkpoint_seconds": 0.1}


@pytest.fixture
def dataset_version(project: Project, settings: Any, live_server: Any, monkeypatch: Any) -> DatasetVersion:
    settings.CLUSTER_URL, settings.CLUSTER_GPUS = live_server.url, 0
    settings.MACHINE_LEASE_SECONDS = 3
    cluster.be_quick(monkeypatch)
    return cluster.small_dataset(project)


def test_a_killed_machine_resumes_and_ends_with_the_weights_of_an_uninterrupted_run(
    dataset_version: DatasetVersion, project: Project, live_server: Any, machines: JoinedMachines
) -> None:
    local = cluster.start(dataset_version, recipe=SHORT)
    assert claim_next(TrainingRun) == local
    local.refresh_from_db()
    runner.execute(local)
    assert local.state == JobState.SUCCEEDED, local.error

    box = machines.start(live_server.url, project=project)
    cluster.until(Machine.objects.exists)
    run = cluster.start(dataset_version, on="machine", recipe=SHORT)
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    box.kill()
    cluster.until(lambda: MachineJob.objects.filter(state="queued").exists())  # its lease is over
    box = machines.start(live_server.url)
    cluster.until(lambda: MachineJob.objects.filter(state="running").exists())
    thread.join(120)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    assert (run.launched["submission"], run.launched["is_open"]) == (2, False)
    assert cluster.weights(run) == cluster.weights(local)
    assert not MachineJob.objects.exists()

    cluster.until(lambda: f"desk/{run.pk}: trained" in box.printed)
    box.process.terminate()
    assert box.process.wait(20) == 0, box.printed
    kept = sorted(path.relative_to(box.home).as_posix() for path in box.home.rglob("*") if path.is_file())
    assert [name for name in kept if name.startswith("joined/")] == ["joined/.lock", "joined/machine.json"]
    assert stat.S_IMODE((box.home / "joined" / "machine.json").stat().st_mode) == 0o600
    assert not (box.home / "postgres").exists()


def test_a_cancelled_run_and_a_revoked_machine(
    dataset_version: DatasetVersion, project: Project, live_server: Any, machines: JoinedMachines
) -> None:
    box = machines.start(live_server.url, project=project)
    cluster.until(Machine.objects.exists)
    run = cluster.start(dataset_version, on="machine", recipe={"epochs": 1000})
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    request_cancel(run)
    thread.join(60)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED, run.error
    assert not MachineJob.objects.exists()

    services.resume_run(run=run, by=None)  # on the machine that waits again
    thread = cluster.follow()
    cluster.until(lambda: MachineJob.objects.filter(state="running").exists())
    assert not list((box.home / "joined" / "weights").iterdir())
    revoke_machine(machine=Machine.objects.get(), by=None)
    assert box.process.wait(30) == 1
    assert "revoked" in box.printed.splitlines()[-1], box.printed
    assert not list((box.home / "joined" / "jobs").iterdir())
    cluster.until(lambda: MachineJob.objects.filter(state="queued").exists())
    cluster.until(lambda: "no machine is joined" in reason(run))
    request_cancel(run)
    thread.join(60)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED


def reason(run: TrainingRun) -> str:
    run.refresh_from_db()
    return str(run.launched["reason"])
