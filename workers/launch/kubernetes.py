"""`--on kubernetes`: a Job, or a PyTorchJob where the Kubeflow operator is, by the API server's HTTP interface.

The interface is called directly: a dozen calls need neither a client package nor kubectl on the machine of the worker.
Shapes as in the API reference of Kubernetes 1.27 to 1.36.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from workers.errors import RewardError
from workers.launch.job import (
    Handle,
    JobLog,
    JobPhase,
    JobStatus,
    LaunchedJob,
    LauncherUnavailable,
)
from workers.launch.kubernetes_manifests import (
    CONTAINER,
    JOB,
    JOB_LABELS,
    PYTORCH_JOB,
    Manifest,
    PodOptions,
    job_manifest,
    pytorch_job_manifest,
    secret_manifest,
    service_manifest,
)

AUTO = "auto"
KINDS = (AUTO, JOB, PYTORCH_JOB)
_SECONDS = 30.0
_MOST_LOG = 4 * 2**20  # bytes
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # of a pod
_IN_CLUSTER = "https://kubernetes.default.svc"
_LISTS = {JOB: "/apis/batch/v1", PYTORCH_JOB: "/apis/kubeflow.org/v1"}
_PLURALS = {JOB: "jobs", PYTORCH_JOB: "pytorchjobs"}
_LONGEST_NAME = 50  # with the index of a host it is a host name
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LOST = "DisruptionTarget"  # a pod's condition: preempted, evicted, drained, or its node is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """api: of the API server; empty: of the cluster that this process runs in. token_file, ca_file: by default those
    of the pod's service account. kind: of the job for several hosts.
    """

    pod: PodOptions
    api: str = ""
    token_file: str = ""
    ca_file: str = ""
    kind: str = AUTO


class KubernetesLauncher:
    name, is_remote = "kubernetes", True

    def __init__(self, options: KubernetesOptions) -> None:
        self._options, self._pod = options, options.pod
        self._core = f"/api/v1/namespaces/{self._pod.namespace}"

    def submit(self, job: LaunchedJob) -> Handle:
        is_plain = (
            _CHARACTERS.issuperset(job.name) and not job.name.startswith("-") and not job.name.endswith("-")
        )
        if not is_plain or not 0 < len(job.name) <= _LONGEST_NAME:
            raise RewardError(
                f"{job.name!r} cannot be the name of a Job: it needs 1 to 50 of a-z, 0-9 and hyphens."
            )
        kind = self._kind(job)
        handle = {"name": job.name, "kind": kind}
        self._create(f"{self._core}/secrets", secret_manifest(job, self._pod))
        try:
            if job.resources.hosts > 1 and kind == JOB:
                self._create(f"{self._core}/services", service_manifest(job, self._pod))
            make = job_manifest if kind == JOB else pytorch_job_manifest
            self._create(self._jobs(kind), make(job, self._pod))
        except LauncherUnavailable:
            raise  # the call is repeated: what is there already is taken
        except RewardError:
            self.forget(handle)
            raise
        return handle

    def find(self, name: str) -> Handle | None:
        """Always one: whatever has this name is ours, and there may be a Secret without a Job."""
        is_operators = (
            self._options.kind != JOB and self._get(f"{self._jobs(PYTORCH_JOB)}/{name}") is not None
        )
        return {"name": name, "kind": PYTORCH_JOB if is_operators else JOB}

    def poll(self, handle: Handle) -> JobStatus:
        found = self._get(self._job(handle))
        if found is None:
            return JobStatus(JobPhase.CANCELLED, f"the {handle['kind']} {handle['name']} was deleted")
        conditions = _conditions(found)
        if conditions.keys() & {"Complete", "Succeeded"}:
            return JobStatus(JobPhase.SUCCEEDED)
        pods = self._pods(handle)
        if (failed := conditions.get("Failed")) is not None:
            return _failure(failed, pods)
        if pods and any(pod.get("status", {}).get("phase") == "Running" for pod in pods):
            return JobStatus(JobPhase.RUNNING)
        return JobStatus(JobPhase.PENDING, next((reason for pod in pods if (reason := _waits_for(pod))), ""))

    def cancel(self, handle: Handle) -> None:
        """Its pods are asked first; it is gone when they are."""
        self._delete(self._job(handle), {"propagationPolicy": "Foreground"})

    def kill(self, handle: Handle) -> None:
        self._delete(self._job(handle), {"propagationPolicy": "Background"})
        for pod in self._pods(handle):
            self._delete(f"{self._core}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        """Of the first of its pods."""
        for pod in self._pods(handle)[:1]:
            response = self._call(
                "GET",
                f"{self._core}/pods/{pod['metadata']['name']}/log",
                params={"container": CONTAINER, "limitBytes": str(offset + _MOST_LOG)},
            )
            if response.is_success:
                return JobLog(response.content[offset:], max(offset, len(response.content)))
        return JobLog(b"", offset)

    def forget(self, handle: Handle) -> None:
        self._delete(f"{self._core}/secrets/{handle['name']}", {})
        if handle["kind"] == JOB:
            self._delete(f"{self._core}/services/{handle['name']}", {})
        self._delete(self._job(handle), {"propagationPolicy": "Background"})

    def check(self) -> str:
        version = self._require("GET", "/version").json().get("gitVersion", "")
        wanted = {"namespace": self._pod.namespace, "verb": "create", "group": "batch", "resource": "jobs"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        if not self._require("POST", path, body=review).json().get("status", {}).get("allowed"):
            raise RewardError(
                f"its account may not create Jobs in the namespace {self._pod.namespace}; grant the role of "
                "docs/clusters.md."
            )
        return f"Kubernetes {version} answers, and Jobs may be created in {self._pod.namespace}"

    def _kind(self, job: LaunchedJob) -> str:
        if job.resources.hosts == 1 or self._options.kind == JOB:
            return JOB
        if self._options.kind == PYTORCH_JOB:
            return PYTORCH_JOB
        found = self._get(_LISTS[PYTORCH_JOB]) or {}
        has_operator = any(each.get("name") == _PLURALS[PYTORCH_JOB] for each in found.get("resources", []))
        return PYTORCH_JOB if has_operator else JOB

    def _jobs(self, kind: str) -> str:
        return f"{_LISTS[kind]}/namespaces/{self._pod.namespace}/{_PLURALS[kind]}"

    def _job(self, handle: Handle) -> str:
        return f"{self._jobs(handle['kind'])}/{handle['name']}"

    def _pods(self, handle: Handle) -> list[Manifest]:
        """In the order of their names, the newest last where one was replaced."""
        selector = f"{JOB_LABELS[handle['kind']]}={handle['name']}"
        found: list[Manifest] = self._require(
            "GET", f"{self._core}/pods", params={"labelSelector": selector}
        ).json()["items"]
        return sorted(found, key=lambda pod: pod["metadata"].get("creationTimestamp") or "", reverse=True)

    def _create(self, path: str, manifest: Manifest) -> None:
        """One of this name that is there already is taken: an interrupted call has made it."""
        response = self._call("POST", path, body=manifest)
        if not response.is_success and response.status_code != 409:
            raise RewardError(f"Kubernetes refuses the {manifest['kind']}: {_message(response)}")

    def _get(self, path: str) -> Manifest | None:
        response = self._call("GET", path)
        if response.status_code == 404:
            return None
        if not response.is_success:
            raise RewardError(f"Kubernetes refuses GET {path}: {_message(response)}")
        found: Manifest = response.json()
        return found

    def _delete(self, path: str, options: dict[str, Any]) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        response = self._call("DELETE", path, body=body)
        if not response.is_success and response.status_code not in (404, 409):
            raise RewardError(f"Kubernetes refuses DELETE {path}: {_message(response)}")

    def _require(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._call(method, path, **options)
        if not response.is_success:
            raise RewardError(f"Kubernetes refuses {method} {path}: {_message(response)}")
        return response

    def _call(
        self, method: str, path: str, *, body: Manifest | None = None, params: dict[str, str] | None = None
    ) -> httpx.Response:
        options = self._options
        token_file = Path(options.token_file) if options.token_file else _ACCOUNT / "token"
        ca_file = Path(options.ca_file) if options.ca_file else _ACCOUNT / "ca.crt"
        try:
            token = token_file.read_text(encoding="utf-8").strip()  # each time: it is replaced every hour
            trusted = ssl.create_default_context(cafile=str(ca_file) if ca_file.is_file() else None)
        except OSError as error:
            raise RewardError(
                f"{error.filename} cannot be read ({error.strerror}); set TOUCHSTONE_KUBERNETES_TOKEN_PATH and "
                "TOUCHSTONE_KUBERNETES_CA_PATH, or run the worker in the cluster."
            ) from None
        try:
            response = httpx.request(
                method,
                f"{options.api or _IN_CLUSTER}{path}",
                json=body,
                params=params,
                headers={"Authorization": f"Bearer {token}"},
                timeout=_SECONDS,
                verify=trusted,
            )
        except httpx.HTTPError as error:
            raise LauncherUnavailable(
                f"Kubernetes does not answer at {options.api or _IN_CLUSTER}: {type(error).__name__}: {error}",
                retry_after=30,
            ) from None
        if response.status_code == 429 or response.status_code >= 500:
            raise LauncherUnavailable(f"Kubernetes does not answer: {_message(response)}", retry_after=30)
        return response


def _message(response: httpx.Response) -> str:
    """Of the Status object that the API server answers with."""
    try:
        said = str(response.json().get("message", ""))
    except ValueError:
        said = response.text
    return f"{response.status_code} {said[:400]}".strip()


def _conditions(thing: Manifest) -> dict[str, Manifest]:
    """By type, those that hold."""
    found = thing.get("status", {}).get("conditions") or []
    return {each["type"]: each for each in found if each.get("status") == "True"}


def _failure(failed: Manifest, pods: list[Manifest]) -> JobStatus:
    said = f"{failed.get('reason', '')}: {failed.get('message', '')}".strip(": ")
    for pod in pods:
        if (lost := _conditions(pod).get(_LOST)) is not None:
            return JobStatus(JobPhase.PREEMPTED, f"a pod was lost ({lost.get('reason', _LOST)})")
    if failed.get("reason") == "DeadlineExceeded":
        return JobStatus(JobPhase.PREEMPTED, "the job reached its time limit (DeadlineExceeded)")
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses") or []:
            ended = container.get("state", {}).get("terminated") or {}
            status = ended.get("exitCode")
            if ended.get("reason") == "OOMKilled":
                words = "the job used more memory than it was given (OOMKilled); give it more, or lower batch_tokens"
                return JobStatus(JobPhase.FAILED, words, status)
            if status:
                return JobStatus(JobPhase.FAILED, f"{said}; its container ended with status {status}", status)
    return JobStatus(JobPhase.FAILED, said)


def _waits_for(pod: Manifest) -> str:
    """Why a pod does not run, empty where it does."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses") or []:
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}".strip(": ")[:300]
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")[:300]
    return ""
