"""What is created in Kubernetes for a training: a Secret, a Job or PyTorchJob, for several hosts a headless Service.

Pods run as a user without rights, on a read-only root file system, in folders that end with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workers.errors import RewardError
from workers.launch.job import RENDEZVOUS_PORT, LaunchedJob

CONTAINER = "pytorch"  # the name that the Kubeflow operator looks for
JOB, PYTORCH_JOB = "Job", "PyTorchJob"
JOB_LABELS = {JOB: "batch.kubernetes.io/job-name", PYTORCH_JOB: "training.kubeflow.org/job-name"}
_SCRATCH, _USER = "/scratch", 10_001
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """image: with this distribution. python: in the image. tolerations: `KEY=VALUE:EFFECT` or `KEY:EFFECT`.
    environment_secret: a Secret whose keys are variables of the training. seconds_kept: after the end of a job.
    grace: seconds between SIGTERM and SIGKILL.
    """

    namespace: str
    image: str
    python: str = "python"
    service_account: str = ""
    pull_secret: str = ""
    environment_secret: str = ""
    priority_class: str = ""
    gpu_resource: str = "nvidia.com/gpu"
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[str] = ()
    seconds_kept: int = 3600
    grace: int = 300


def secret_manifest(job: LaunchedJob, options: PodOptions) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, options),
        "type": "Opaque",
        "stringData": dict(job.secrets),
    }


def service_manifest(job: LaunchedJob, options: PodOptions) -> Manifest:
    """The hosts of an indexed Job are NAME-INDEX.NAME by it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, options),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABELS[JOB]: job.name},
            "ports": [{"name": "rendezvous", "port": RENDEZVOUS_PORT}],
        },
    }


def job_manifest(job: LaunchedJob, options: PodOptions) -> Manifest:
    """A Job of one host, which Kubernetes starts again on another node where its node is lost; of several hosts an
    indexed Job, which fails with any of them: they can only start together."""
    hosts = job.resources.hosts
    rendezvous = f"{job.name}-0.{job.name}:{RENDEZVOUS_PORT}" if hosts > 1 else ""
    spec: Manifest = {
        "backoffLimit": 0,
        "completions": hosts,
        "parallelism": hosts,
        "activeDeadlineSeconds": job.resources.seconds,
        "ttlSecondsAfterFinished": options.seconds_kept,
        "template": _pod(job, options, rendezvous),
    }
    if hosts > 1:
        spec["completionMode"] = "Indexed"
        spec["template"]["spec"]["subdomain"] = job.name
    else:
        disrupted = {"type": "DisruptionTarget", "status": "True"}
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [disrupted]}]}
    return {"apiVersion": "batch/v1", "kind": JOB, "metadata": _metadata(job, options), "spec": spec}


def pytorch_job_manifest(job: LaunchedJob, options: PodOptions) -> Manifest:
    """Of the Kubeflow training operator, which names the first host MASTER_ADDR and can schedule all at once."""
    pod = _pod(job, options, f"$(MASTER_ADDR):{RENDEZVOUS_PORT}")
    workers = job.resources.hosts - 1
    replicas = {"Master": {"replicas": 1, "restartPolicy": "Never", "template": pod}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "restartPolicy": "Never", "template": pod}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": PYTORCH_JOB,
        "metadata": _metadata(job, options),
        "spec": {
            "nprocPerNode": str(job.resources.processes),
            "pytorchReplicaSpecs": replicas,
            "runPolicy": {
                "activeDeadlineSeconds": job.resources.seconds,
                "backoffLimit": 0,
                "cleanPodPolicy": "None",
                "ttlSecondsAfterFinished": options.seconds_kept,
            },
        },
    }


def _metadata(job: LaunchedJob, options: PodOptions) -> Manifest:
    return {
        "name": job.name,
        "namespace": options.namespace,
        "labels": _labels(job),
        "annotations": {"touchstone/run": job.run, "touchstone/files": job.files},
    }


def _labels(job: LaunchedJob) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "touchstone-training",
        "app.kubernetes.io/managed-by": "touchstone",
        "app.kubernetes.io/instance": job.name,
    }


def _pod(job: LaunchedJob, options: PodOptions, rendezvous: str) -> Manifest:
    wanted = job.resources
    amounts = {"cpu": str(wanted.cpus), "memory": f"{wanted.memory_gb}Gi"}
    if wanted.gpus:
        amounts[options.gpu_resource] = str(wanted.gpus)
    container: Manifest = {
        "name": CONTAINER,
        "image": options.image,
        "command": [options.python, "-m", job.module],
        "args": [
            *job.arguments,
            *(["--rendezvous", rendezvous] if rendezvous else []),
            "--scratch",
            _SCRATCH,
        ],
        "env": [
            {"name": "HOME", "value": _SCRATCH},
            {"name": "TMPDIR", "value": _SCRATCH},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": "TOUCHSTONE_HOST_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *({"name": name, "value": value} for name, value in job.environment.items()),
            *(
                {"name": name, "valueFrom": {"secretKeyRef": {"name": job.name, "key": name}}}
                for name in job.secrets
            ),
        ],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "scratch", "mountPath": _SCRATCH},
            {"name": "memory", "mountPath": "/dev/shm"},  # noqa: S108 - what NCCL shares between processes
        ],
    }
    if options.environment_secret:
        container["envFrom"] = [{"secretRef": {"name": options.environment_secret}}]
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": options.grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
        ],
    }
    if options.service_account:
        spec["serviceAccountName"] = options.service_account
    if options.pull_secret:
        spec["imagePullSecrets"] = [{"name": options.pull_secret}]
    if options.priority_class:
        spec["priorityClassName"] = options.priority_class
    if options.node_selector:
        spec["nodeSelector"] = dict(options.node_selector)
    if options.tolerations:
        spec["tolerations"] = [_toleration(each) for each in options.tolerations]
    return {"metadata": {"labels": _labels(job)}, "spec": spec}


def _toleration(text: str) -> dict[str, str]:
    what, _, effect = text.strip().rpartition(":")
    key, has_value, value = what.partition("=")
    if not key or effect not in _EFFECTS:
        raise RewardError(
            f"{text!r} in TOUCHSTONE_KUBERNETES_TOLERATIONS is not KEY=VALUE:EFFECT or KEY:EFFECT; the effect is one "
            f"of {', '.join(_EFFECTS)}."
        )
    if not has_value:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}
