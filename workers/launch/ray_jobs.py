"""`--on ray`: a job of the Ray Jobs API, over HTTP, so that the installation itself needs no ray.

The job's driver (`workers.launch.ray_driver`) trains on the hosts of a placement group. The API is "Ray Jobs REST API"
in Ray's documentation.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

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
from workers.launch.ray_driver import HOST_LOST, STOPPED, TIME_OVER, TRAINS, WAITS

DRIVER = "workers.launch.ray_driver"
_SECONDS = 30.0  # for one call
_STOP_SECONDS = "120"  # that a training has to write its checkpoint; Ray's default is 3
_PREEMPTED = {
    HOST_LOST: "a host of the Ray cluster was lost",
    STOPPED: "the job was stopped from outside",
    TIME_OVER: "the job reached its time limit",
}
# What Ray says of jobs whose driver was lost with its node, or found none to run on in time.
_DRIVER_LOST = {
    "JOB_SUPERVISOR_ACTOR_DIED",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RayOptions:
    """url: of the dashboard of the head node, http://HOST:8265. token: where the cluster asks for one.

    python: the interpreter on the nodes that has this package. resources: custom ones of Ray that each host needs, by
    name. runtime_env: of Ray, added to that of each job.
    """

    url: str
    token: str = field(default="", repr=False)
    python: str = "python"
    resources: Mapping[str, float] = field(default_factory=dict)
    runtime_env: Mapping[str, Any] = field(default_factory=dict)


class RayLauncher:
    """The handle is {"job": submission id}; the id is the name of the job, so that a job is submitted once."""

    name, is_remote = "ray", True

    def __init__(self, options: RayOptions) -> None:
        self._options = options
        self._training = set[str]()  # jobs whose drivers have said so
        self._headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}

    def submit(self, job: LaunchedJob) -> Handle:
        body = {
            "entrypoint": shlex.join(self._entrypoint(job)),
            "submission_id": job.name,
            "runtime_env": self._runtime_env(job),
            "metadata": {"run": job.run, "files": job.files},
        }
        response = self._call("POST", "/api/jobs/", json=body)
        if response.is_success or self.find(job.name) is not None:  # of a submission that was cut off before
            return {"job": job.name}
        raise self._refusal("submit a job", response)

    def _entrypoint(self, job: LaunchedJob) -> list[str]:
        resources = job.resources
        wanted = {
            "hosts": resources.hosts,
            "gpus": resources.gpus,
            "cpus": resources.cpus,
            "memory_gb": resources.memory_gb,
            "seconds": resources.seconds,
            "resources": dict(self._options.resources),
        }
        command = [self._options.python, "-m", DRIVER, json.dumps(wanted)]
        return [*command, job.module, *job.arguments]

    def _runtime_env(self, job: LaunchedJob) -> dict[str, Any]:
        given = dict(self._options.runtime_env)
        variables = {"RAY_JOB_STOP_WAIT_TIME_S": _STOP_SECONDS, **given.pop("env_vars", {})}
        return given | {"env_vars": variables | dict(job.environment) | dict(job.secrets)}

    def find(self, name: str) -> Handle | None:
        return {"job": name} if self._details(name) is not None else None

    def poll(self, handle: Handle) -> JobStatus:
        found = self._details(handle["job"])
        if found is None:
            return JobStatus(
                JobPhase.PREEMPTED, "the Ray cluster no longer knows the job: it was started again"
            )
        status, code = str(found["status"]), found.get("driver_exit_code")
        message = " ".join(str(found.get("message") or "").split())[:500]
        if status == "RUNNING":
            return self._running(handle)
        if status == "FAILED":
            return _failed(code, str(found.get("error_type") or ""), message)
        phase = {
            "PENDING": JobPhase.PENDING,
            "SUCCEEDED": JobPhase.SUCCEEDED,
            "STOPPED": JobPhase.CANCELLED,
        }.get(status)
        if phase is None:
            raise RewardError(f"Ray reports the unknown status {status!r} of the job {handle['job']}.")
        is_said = phase != JobPhase.SUCCEEDED
        return JobStatus(phase, message if is_said else "", code)

    def _running(self, handle: Handle) -> JobStatus:
        """The driver runs at once; it may still wait for its hosts, and prints so."""
        if handle["job"] in self._training:
            return JobStatus(JobPhase.RUNNING)
        lines = self.logs(handle).content.decode("utf-8", "replace").splitlines()
        told = [line for line in lines if line.startswith((WAITS, TRAINS))]
        if told and told[-1].startswith(TRAINS):
            self._training.add(handle["job"])
            return JobStatus(JobPhase.RUNNING)
        return JobStatus(JobPhase.PENDING, told[-1] if told else "the driver starts")

    def cancel(self, handle: Handle) -> None:
        self._call("POST", f"{self._path(handle)}/stop")

    def kill(self, handle: Handle) -> None:
        """Ray ends what does not end within two minutes; what it writes until then is refused."""
        self.cancel(handle)

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        """Of the driver, and of the hosts around their trainings."""
        response = self._call("GET", f"{self._path(handle)}/logs")
        content = str(response.json().get("logs") or "").encode() if response.is_success else b""
        return JobLog(content[offset:], max(offset, len(content)))

    def forget(self, handle: Handle) -> None:
        """Its entry holds the run's token. One that still ends keeps it, and the token is refused by then."""
        self._call("DELETE", self._path(handle))

    def check(self) -> str:
        response = self._call("GET", "/api/version")
        if not response.is_success:
            raise self._refusal("tell its version", response)
        return f"Ray {response.json().get('ray_version', 'of an unknown version')} at {self._options.url}"

    def _details(self, name: str) -> dict[str, Any] | None:
        response = self._call("GET", f"/api/jobs/{quote(name)}")
        if response.status_code == 404:
            return None
        if not response.is_success:
            raise self._refusal(f"tell about the job {name}", response)
        found: dict[str, Any] = response.json()
        return found

    def _path(self, handle: Handle) -> str:
        return f"/api/jobs/{quote(str(handle['job']))}"

    def _call(self, method: str, path: str, **values: Any) -> httpx.Response:
        try:
            response = httpx.request(
                method, f"{self._options.url}{path}", headers=self._headers, timeout=_SECONDS, **values
            )
        except httpx.HTTPError as error:
            raise LauncherUnavailable(
                f"Ray does not answer at {self._options.url} ({type(error).__name__}); check that the head node runs, "
                "and TOUCHSTONE_RAY_URL."
            ) from error
        if response.status_code in (502, 503, 504):
            raise LauncherUnavailable(f"Ray at {self._options.url} is unavailable ({response.status_code}).")
        return response

    def _refusal(self, action: str, response: httpx.Response) -> RewardError:
        if response.status_code in (401, 403):
            return RewardError(f"Ray at {self._options.url} refuses the token: set TOUCHSTONE_RAY_TOKEN.")
        # Ray answers with a traceback, whose last line is the error.
        told = (response.text.strip().splitlines() or ["no reason"])[-1][:300]
        return RewardError(f"Ray at {self._options.url} did not {action} ({response.status_code}): {told}")


def _failed(code: int | None, error: str, message: str) -> JobStatus:
    if code in _PREEMPTED:
        return JobStatus(JobPhase.PREEMPTED, _PREEMPTED[code], code)
    if error in _DRIVER_LOST:
        return JobStatus(JobPhase.PREEMPTED, f"the driver of the job was lost: {message}", code)
    return JobStatus(JobPhase.FAILED, message or error, code)
