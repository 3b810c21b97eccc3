"""Trainings through the API server of Kubernetes, in pods that have no disk in common with the installation."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState, claim_next
from apps.training import runner
from apps.training.launching.launchers import check_launchers, launcher_named
from apps.training.models import ON_WORKERS, TrainingRun
from tests.training import cluster
from tests.training.fake_kubernetes import TOKEN, FakeKubernetes, rule_errors, schema_errors
from workers.errors import RewardError
from workers.launch.job import JobPhase, JobResources, LaunchedJob, LauncherUnavailable
from workers.launch.kubernetes_manifests import (
    PodOptions,
    job_manifest,
    pytorch_job_manifest,
    secret_manifest,
    service_manifest,
)

JOB = LaunchedJob(
    name="touchstone-0a1b2c3d-12-1",
    module="workers.launch",
    arguments=["--hosts", "1"],
    environment={"TOUCHSTONE_RUN_FILES": "https://touchstone.example.org/v1/run-files/12"},
    secrets={"TOUCHSTONE_RUN_TOKEN": "secret"},
    resources=JobResources(gpus=8, cpus=32, memory_gb=400),
    run="desk/12",
    files="run-files/12-0a1b2c3d",
)
OPTIONS = PodOptions(
    namespace="training",
    image="registry.example.org/touchstone:1",
    service_account="trainer",
    pull_secret="registry",
    environment_secret="proxies",
    priority_class="low",
    node_selector={"gpu": "h100"},
    tolerations=["nvidia.com/gpu:NoSchedule", "team=rewards:NoExecute"],
)


@pytest.fixture
def kubernetes(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    found = FakeKubernetes(tmp_path / "pods")
    settings.KUBERNETES_API, settings.KUBERNETES_TOKEN_PATH = found.url, str(tmp_path / "token")
    settings.KUBERNETES_POD = settings.KUBERNETES_POD | {"image": "touchstone", "python": sys.executable}
    settings.CLUSTER_GPUS = 0
    cluster.be_quick(monkeypatch)
    yield found
    found.close()


@pytest.mark.parametrize("hosts", [1, 3])
def test_manifests_are_valid_and_pods_have_no_rights(hosts: int) -> None:
    job = replace(JOB, resources=replace(JOB.resources, hosts=hosts))
    manifests = [make(job, OPTIONS) for make in (job_manifest, pytorch_job_manifest, secret_manifest)]
    for manifest in [*manifests, service_manifest(job, OPTIONS)]:
        assert not schema_errors(manifest) + rule_errors(manifest)
        assert "secret" not in str(manifest).replace("secretKeyRef", "").replace("secretRef", "") or (
            manifest["kind"] == "Secret"
        )
    pod = manifests[0]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["containers"][0]["resources"]["limits"] == {
        "cpu": "32",
        "memory": "400Gi",
        "nvidia.com/gpu": "8",
    }
    assert pod["tolerations"][1] == {
        "key": "team",
        "operator": "Equal",
        "value": "rewards",
        "effect": "NoExecute",
    }
    with pytest.raises(RewardError, match="is not KEY=VALUE:EFFECT"):
        job_manifest(job, replace(OPTIONS, tolerations=["always"]))


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob", "Secret", "Service"])
def test_kubernetes_validate_agrees(kind: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = replace(JOB, resources=replace(JOB.resources, hosts=3))
    if kind == "PyTorchJob":
        template = pytorch_job_manifest(job, OPTIONS)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
        manifest = {"apiVersion": "v1", "kind": "PodTemplate", "template": template}
    else:
        make = {"Job": job_manifest, "Secret": secret_manifest, "Service": service_manifest}[kind]
        manifest = make(job, OPTIONS)
    for version in ("1.29", "1.34"):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_job_is_made_once_followed_and_removed(kubernetes: FakeKubernetes, settings: Any) -> None:
    job = replace(JOB, module="none", resources=JobResources())
    settings.KUBERNETES_POD = settings.KUBERNETES_POD | {"python": "sh"}
    launcher = launcher_named("kubernetes")
    assert "v1.34.1 answers" in check_launchers()
    handle = launcher.submit(job)
    assert launcher.submit(job) == handle
    assert kubernetes.created == [f"secrets/{job.name}", f"jobs/{job.name}"]
    cluster.until(lambda: launcher.poll(handle).phase.is_final)  # sh has no option -m
    status = launcher.poll(handle)
    assert (status.phase, status.exit_status) == (JobPhase.FAILED, 2)
    assert "BackoffLimitExceeded" in status.reason
    assert b"cannot open none" in launcher.logs(handle).content
    launcher.forget(handle)
    assert not kubernetes.objects
    assert launcher.poll(handle).phase == JobPhase.CANCELLED
    kubernetes.create("secrets", secret_manifest(job, replace(OPTIONS, namespace="default")))
    left = launcher.find(job.name)  # by a worker that ended before it made the Job
    assert left == handle
    launcher.forget(left)
    assert not kubernetes.objects
    kubernetes.is_down = True
    with pytest.raises(LauncherUnavailable, match="503"):
        launcher.poll(handle)


def test_an_image_that_is_missing_is_the_reason_of_a_pending_job(
    kubernetes: FakeKubernetes, settings: Any
) -> None:
    settings.KUBERNETES_POD = settings.KUBERNETES_POD | {"image": "missing:1"}
    launcher = launcher_named("kubernetes")
    handle = launcher.submit(replace(JOB, resources=JobResources()))
    cluster.until(lambda: launcher.poll(handle).reason)
    assert launcher.poll(handle).phase == JobPhase.PENDING
    assert launcher.poll(handle).reason == 'ImagePullBackOff: Back-off pulling image "missing:1"'
    launcher.cancel(handle)
    cluster.until(lambda: launcher.poll(handle).phase == JobPhase.CANCELLED)
    with pytest.raises(RewardError, match="Kubernetes refuses the Secret: 422"):
        launcher.submit(replace(JOB, secrets={"TOUCHSTONE_RUN_TOKEN": 3}))  # type: ignore[dict-item]


def run_both(
    project: Project, settings: Any, live_server: Any, recipe: dict[str, Any], hosts: int
) -> tuple[TrainingRun, TrainingRun]:
    """A run that has ended on this machine, and the same one on the cluster, not followed yet."""
    settings.CLUSTER_URL = live_server.url
    dataset_version = cluster.small_dataset(project)
    local = cluster.start(dataset_version, recipe=recipe)
    assert claim_next(TrainingRun, ON_WORKERS) == local
    local.refresh_from_db()
    runner.execute(local)
    return local, cluster.start(dataset_version, recipe=recipe, on="kubernetes", hosts=hosts)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_run_whose_node_is_lost_ends_with_the_weights_of_an_uninterrupted_one(
    kubernetes: FakeKubernetes, project: Project, settings: Any, live_server: Any
) -> None:
    local, run = run_both(project, settings, live_server, {}, hosts=1)
    thread = cluster.follow()
    cluster.until(lambda: cluster.checkpoints_sent(run))
    (pod,) = kubernetes.pods
    kubernetes.lose_node(pod)
    thread.join(180)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    assert len(kubernetes.processes) == 2
    assert cluster.weights(run) == cluster.weights(local)
    assert not kubernetes.objects


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_hosts_of_a_pytorch_job_train_as_one_process_does(
    kubernetes: FakeKubernetes, project: Project, settings: Any, live_server: Any
) -> None:
    kubernetes.has_operator = True
    local, run = run_both(project, settings, live_server, {"dropout": 0.0, "epochs": 6}, hosts=2)
    cluster.follow().join(180)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    assert len(kubernetes.processes) == 2
    assert [each for each in kubernetes.created if each.startswith("pytorchjobs")]
    cluster.assert_close(run, local)
