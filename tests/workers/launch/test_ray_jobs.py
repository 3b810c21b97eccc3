"""The Ray launcher against answers as Ray 2.60 gives them; a real cluster is in tests/training/test_ray.py."""

import json
from typing import Any

import httpx
import pytest

from workers.errors import RewardError
from workers.launch.job import JobPhase, JobResources, LaunchedJob, LauncherUnavailable
from workers.launch.ray_driver import HOST_LOST, STOPPED, interface_of
from workers.launch.ray_jobs import RayLauncher, RayOptions

JOB = LaunchedJob(
    name="touchstone-ab-1-1",
    module="workers.launch",
    arguments=["--hosts", "2"],
    environment={"A": "1"},
    secrets={"TOKEN": "s3cret"},
    resources=JobResources(hosts=2, gpus=8),
)
HANDLE = {"job": JOB.name}


class Ray:
    """answers: by method and path, status and JSON or text."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[httpx.Request] = []

    def __call__(self, method: str, url: str, **values: Any) -> httpx.Response:
        values.pop("timeout")
        request = httpx.Request(method, url, **values)
        self.asked.append(request)
        status, content = self.answers.get((method, request.url.path), (404, "Job does not exist"))
        if isinstance(content, Exception):
            raise content
        given = {"text": content} if isinstance(content, str) else {"json": content}
        return httpx.Response(status, request=request, **given)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    server = Ray()
    monkeypatch.setattr("workers.launch.ray_jobs.httpx.request", server)
    return server


@pytest.fixture
def launcher() -> RayLauncher:
    options = RayOptions(
        url="http://head.example:8265",
        token="key",
        resources={"rack": 0.5},
        runtime_env={"pip": ["x"], "env_vars": {"B": "2"}},
    )
    assert "key" not in repr(options)
    return RayLauncher(options)


def details(status: str, **more: Any) -> dict[str, Any]:
    return {"type": "SUBMISSION", "submission_id": JOB.name, "status": status, "message": "told", **more}


def test_a_job_has_its_name_and_its_secrets_in_the_environment_only(ray: Ray, launcher: RayLauncher) -> None:
    ray.answers["POST", "/api/jobs/"] = (200, {"submission_id": JOB.name})
    assert launcher.submit(JOB) == HANDLE
    (request,) = ray.asked
    body = json.loads(request.content)
    assert request.headers["Authorization"] == "Bearer key"
    assert body["submission_id"] == JOB.name
    assert body["entrypoint"].startswith("python -m workers.launch.ray_driver '{")
    assert '"gpus": 8' in body["entrypoint"] and '"rack": 0.5' in body["entrypoint"]
    assert body["entrypoint"].endswith("workers.launch --hosts 2") and "s3cret" not in body["entrypoint"]
    assert body["runtime_env"]["pip"] == ["x"]
    assert {"A": "1", "B": "2", "TOKEN": "s3cret"}.items() <= body["runtime_env"]["env_vars"].items()


def test_a_job_that_is_there_already_is_taken(ray: Ray, launcher: RayLauncher) -> None:
    traceback = "Traceback (most recent call last):\nValueError: Job with submission_id x already exists.\n"
    ray.answers["POST", "/api/jobs/"] = (500, traceback)
    assert launcher.find(JOB.name) is None
    with pytest.raises(RewardError, match=r"did not submit a job .500.: ValueError: Job with submission_id"):
        launcher.submit(JOB)
    ray.answers["GET", f"/api/jobs/{JOB.name}"] = (200, details("RUNNING"))
    assert launcher.submit(JOB) == HANDLE == launcher.find(JOB.name)


LOST = details("FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED")


@pytest.mark.parametrize(
    ("found", "phase", "reason"),
    [
        (details("PENDING"), JobPhase.PENDING, "told"),
        (details("SUCCEEDED", driver_exit_code=0), JobPhase.SUCCEEDED, ""),
        (details("STOPPED"), JobPhase.CANCELLED, "told"),
        (details("FAILED", driver_exit_code=HOST_LOST), JobPhase.PREEMPTED, "a host of the Ray cluster was lost"),
        (details("FAILED", driver_exit_code=STOPPED), JobPhase.PREEMPTED, "the job was stopped from outside"),
        (LOST, JobPhase.PREEMPTED, "the driver of the job was lost: told"),
        (details("FAILED", error_type="RUNTIME_ENV_SETUP_FAILURE"), JobPhase.FAILED, "told"),
        (details("FAILED", driver_exit_code=1), JobPhase.FAILED, "told"),
        (None, JobPhase.PREEMPTED, "the Ray cluster no longer knows the job: it was started again"),
    ],
)  # fmt: skip
def test_states(ray: Ray, launcher: RayLauncher, found: Any, phase: JobPhase, reason: str) -> None:
    if found is not None:
        ray.answers["GET", f"/api/jobs/{JOB.name}"] = (200, found)
    status = launcher.poll(HANDLE)
    assert (status.phase, status.reason) == (phase, reason)


def test_a_job_whose_driver_waits_for_hosts_is_pending(ray: Ray, launcher: RayLauncher) -> None:
    ray.answers["GET", f"/api/jobs/{JOB.name}"] = (200, details("RUNNING"))
    logs = "Running entrypoint\n[touchstone] waits for 2 hosts, each with 8 GPU; free now: 4 GPU on 1 nodes\n"
    ray.answers["GET", f"/api/jobs/{JOB.name}/logs"] = (200, {"logs": logs})
    status = launcher.poll(HANDLE)
    assert status.phase == JobPhase.PENDING and "free now: 4 GPU" in status.reason
    ray.answers["GET", f"/api/jobs/{JOB.name}/logs"] = (200, {"logs": f"{logs}[touchstone] trains on a, b\n"})
    assert launcher.poll(HANDLE).phase == JobPhase.RUNNING
    asked = len(ray.asked)
    assert launcher.poll(HANDLE).phase == JobPhase.RUNNING
    assert len(ray.asked) == asked + 1  # its log is not read again
    assert launcher.logs(HANDLE, 8).content.startswith(b"entrypoint")


def test_a_cluster_that_does_not_answer_and_one_that_refuses(ray: Ray, launcher: RayLauncher) -> None:
    ray.answers["GET", "/api/version"] = (200, httpx.ConnectError("refused"))
    with pytest.raises(
        LauncherUnavailable, match=r"does not answer at http://head.example:8265.*TOUCHSTONE_RAY_URL"
    ):
        launcher.check()
    ray.answers["GET", "/api/version"] = (401, "Unauthorized")
    with pytest.raises(RewardError, match="set TOUCHSTONE_RAY_TOKEN"):
        launcher.check()
    ray.answers["GET", "/api/version"] = (200, {"ray_version": "2.60.0"})
    assert launcher.check() == "Ray 2.60.0 at http://head.example:8265"


def test_the_interface_of_an_address() -> None:
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.99") == ""
