"""`--on local`: child processes of the worker, which end with it."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from workers.launch.job import Handle, JobLog, JobPhase, JobStatus, LaunchedJob

StartChild = Callable[[LaunchedJob], subprocess.Popen[bytes]]
_LOST = JobStatus(JobPhase.PREEMPTED, "The process ended with the worker that had started it.")


class LocalLauncher:
    """start: starts a child in a process group of its own, which the operating system ends with this process."""

    name, is_remote = "local", False

    def __init__(self, start: StartChild) -> None:
        self._start = start
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._logs: dict[int, Path] = {}

    def submit(self, job: LaunchedJob) -> Handle:
        child = self._start(job)
        self._children[child.pid] = child
        if job.log is not None:
            self._logs[child.pid] = job.log
        return {"pid": child.pid}

    def find(self, name: str) -> Handle | None:
        """Nothing: `submit` cannot end without an answer, but with the child."""
        return None

    def poll(self, handle: Handle) -> JobStatus:
        return self.wait(handle, 0.0)

    def wait(self, handle: Handle, seconds: float) -> JobStatus:
        """`poll`, until it has ended or so many seconds have passed."""
        child = self._children.get(handle["pid"])
        if child is None:
            return _LOST
        with suppress(subprocess.TimeoutExpired):
            status = child.wait(seconds)
            return JobStatus(JobPhase.FAILED if status else JobPhase.SUCCEEDED, "", status)
        return JobStatus(JobPhase.RUNNING)

    def cancel(self, handle: Handle) -> None:
        if (child := self._children.get(handle["pid"])) is not None:
            child.send_signal(signal.SIGTERM)

    def kill(self, handle: Handle) -> None:
        """With everything that it started."""
        if (child := self._children.get(handle["pid"])) is not None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        path = self._logs.get(handle["pid"])
        return JobLog(b"", offset) if path is None else file_log(path, offset)

    def forget(self, handle: Handle) -> None:
        self.kill(handle)
        self._children.pop(handle["pid"], None)
        self._logs.pop(handle["pid"], None)

    def check(self) -> str:
        return "trains in child processes of the worker"


def file_log(path: Path, offset: int) -> JobLog:
    """A log that is a file of this machine; nothing where there is none yet."""
    if not path.is_file():
        return JobLog(b"", offset)
    with path.open("rb") as source:
        source.seek(offset)
        content = source.read()
    return JobLog(content, offset + len(content))
