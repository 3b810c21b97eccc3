"""The training of one attempt of a run, as the worker follows it, wherever it trains."""

from pathlib import Path
from typing import Protocol

from workers.launch.job import LaunchedJob
from workers.launch.local import LocalLauncher


class RunProcess(Protocol):
    """grace: seconds that it has after `ask_to_stop` until it is killed."""

    grace: float

    def wait(self) -> int | None:
        """For about half a second; the exit status of `workers.train`, or None. Raises DomainError."""

    def ask_to_stop(self) -> None:
        """It writes a checkpoint and ends."""

    def interrupt(self) -> None:
        """The worker stops: a process of this machine is asked to stop. Raises Interrupted where it goes on alone."""

    def kill(self) -> None: ...

    def leave(self) -> None:
        """This worker follows it no longer: what cannot go on without it ends."""


class LocalRun:
    """A child process of this worker."""

    def __init__(self, launcher: LocalLauncher, job: LaunchedJob, *, tick: float, grace: float) -> None:
        self._launcher, self._tick, self.grace = launcher, tick, grace
        self._handle = launcher.submit(job)

    @property
    def pid(self) -> int:
        return int(self._handle["pid"])

    def wait(self) -> int | None:
        return self._launcher.wait(self._handle, self._tick).exit_status

    def ask_to_stop(self) -> None:
        self._launcher.cancel(self._handle)

    interrupt = ask_to_stop

    def kill(self) -> None:
        self._launcher.kill(self._handle)

    def leave(self) -> None:
        self._launcher.forget(self._handle)


def local_job(module: str, folder: Path, processes: int) -> LaunchedJob:
    arguments = [str(folder), *(["--processes", str(processes)] if processes > 1 else [])]
    return LaunchedJob(name=folder.name, module=module, arguments=arguments, log=folder / "log.txt")
