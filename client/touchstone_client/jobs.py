"""Waiting for jobs of the server: dataset versions, training runs, judge runs, inductions."""

import time
from typing import Any, Protocol, TypeVar

from touchstone_client.api_objects import ApiObject, api_object
from touchstone_client.calls import Flow, Pause, Request, send
from touchstone_client.errors import JobFailed
from touchstone_client.progress import Progress, progress_bar

UNFINISHED = frozenset({"queued", "running"})
_FIRST_SECONDS, _LONGEST_SECONDS = 0.5, 5.0


@api_object
class JobProgress(ApiObject):
    done: float | None = None
    total: float | None = None
    note: str | None = None


class Job(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def error(self) -> str: ...


JobT = TypeVar("JobT", bound=Job)


def wait_for(request: Request[JobT], *, name: str, timeout: float | None, progress: Progress) -> Flow[JobT]:
    """Ask until the job has ended. Raises JobFailed unless it succeeded, and TimeoutError after `timeout` seconds."""
    until = None if timeout is None else time.monotonic() + timeout
    seconds = _FIRST_SECONDS
    with progress_bar(progress, name, unit=" steps") as show:
        while True:
            job = yield from send(request)
            done, total = _steps(job)
            if done is not None:
                show(done, total)
            if job.state not in UNFINISHED:
                break
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(
                    f"{name} is {job.state} after {timeout:g} seconds; it goes on at the server."
                )
            yield Pause(seconds)
            seconds = min(seconds * 1.5, _LONGEST_SECONDS)
    if job.state != "succeeded":
        raise JobFailed(f"{name} {job.state}: {job.error or 'no reason was given'}", job)
    return job


def _steps(job: Any) -> tuple[int | None, int | None]:
    progress = getattr(job, "progress", None)
    steps = progress.to_dict() if isinstance(progress, JobProgress) else progress
    if not isinstance(steps, dict):
        return None, None
    found = [steps.get(name) for name in ("done", "total")]
    done, total = (int(value) if isinstance(value, int | float) else None for value in found)
    return done, total
