"""Trainings on a machine that has joined: another process with a home, which reaches the installation by HTTP only."""

import stat
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState, claim_next, request_cancel
from apps.datasets.models import DatasetVersion
from apps.machines.models import Machine, MachineJob
from apps.training import runner
from apps.training.models import TrainingRun
from tests.machines.conftest import JoinedMachines
from tests.training import cluster

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def dataset_version(project: Project, settings: Any, live_server: Any, monkeypatch: Any) -> DatasetVersion:
    settings.CLUSTER_URL, settings.CLUSTER_GPUS = live_server.url, 0
    settings.MACHINE_LEASE_SECONDS = 3
    cluster.be_quick(monkeypatch)
    return cluster.small_dataset(project)


def test_a_killed_machine_resumes_and_ends_with_the_weights_of_an_uninterrupted_run(
    dataset_version: DatasetVersion, project: Project, live_server: Any, machines: JoinedMachines
) -> None:
    local = cluster.start(dataset_version)
    assert claim_next(TrainingRun) == local
    local.refresh_from_db()
    runner.execute(local)
    assert local.state == JobState.SUCCEEDED, local.error

    box = machines.start(live_server.url, project=project)
    cluster.until(Machine.objects.exists)
    run = cluster.start(dataset_version, on="machine")
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
    assert cluster.losses(run) == cluster.losses(local)
    assert not MachineJob.objects.exists()

    cluster.until(lambda: f"desk/{run.pk}: trained" in box.said)
    box.process.terminate()
    assert box.process.wait(20) == 0, box.said
    kept = sorted(path.relative_to(box.home).as_posix() for path in box.home.rglob("*") if path.is_file())
    assert [name for name in kept if name.startswith("joined/")] == ["joined/.lock", "joined/machine.json"]
    assert stat.S_IMODE((box.home / "joined" / "machine.json").stat().st_mode) == 0o600
    assert not (box.home / "postgres").exists()


def test_a_cancelled_run_ends_on_its_machine_and_resumes_on_another(
    dataset_version: DatasetVersion, project: Project, live_server: Any, machines: JoinedMachines
) -> None:
    box = machines.start(live_server.url, project=project)
    cluster.until(Machine.objects.exists)
    run = cluster.start(dataset_version, on="machine", recipe={"epochs": 2000})
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    request_cancel(run)
    thread.join(60)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED, run.error
    cluster.until(lambda: "ended" in box.said)
    assert not list((box.home / "joined" / "jobs").iterdir())
    assert not MachineJob.objects.exists()


def test_a_revoked_machine_ends_its_job_and_is_refused(
    dataset_version: DatasetVersion, project: Project, live_server: Any, machines: JoinedMachines
) -> None:
    from apps.machines.services import revoke_machine

    box = machines.start(live_server.url, project=project)
    cluster.until(Machine.objects.exists)
    run = cluster.start(dataset_version, on="machine", recipe={"epochs": 2000})
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    revoke_machine(machine=Machine.objects.get(), by=None)
    assert box.process.wait(30) == 1
    assert "revoked" in box.said.splitlines()[-1]
    cluster.until(lambda: MachineJob.objects.filter(state="queued").exists())
    run.refresh_from_db()
    assert "no machine is joined" in run.launched["reason"] or run.launched["phase"] == "pending"
    request_cancel(run)
    thread.join(60)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED
