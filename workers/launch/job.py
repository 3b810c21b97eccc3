"""What is launched, what a launcher answers, and what a launcher is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from workers.errors import Unavailable

ENTRY = "workers.launch"  # what every host of a cluster runs
URL_VARIABLE, TOKEN_VARIABLE = "TOUCHSTONE_RUN_FILES", "TOUCHSTONE_RUN_TOKEN"
RENDEZVOUS_PORT = 29_400  # of torchrun

Handle = dict[str, Any]  # JSON: another process goes on with it


class JobPhase(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"  # ended through no fault of the training: it is submitted again
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (JobPhase.PENDING, JobPhase.RUNNING)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """reason: in words, empty where there is nothing to say. exit_status: of the training, where it is known."""

    phase: JobPhase
    reason: str = ""
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResources:
    """Of each host but `hosts`. gpus: 0 trains on the CPU, in `processes` processes. memory_gb: GiB."""

    hosts: int = 1
    processes: int = 1
    gpus: int = 0
    cpus: int = 4
    memory_gb: int = 16
    seconds: int = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedJob:
    """`python -m module arguments...`, once on every host.

    name: of this submission; lower-case letters, digits and hyphens, at most 50. A launcher that has a job of this
    name takes that one: what is submitted again after a crash runs once.
    environment: without secrets. secrets: variables too, which only the job may read.
    run, files: the training run, and where its files are in the artifact store, for labels. project: the run's, by its
    slug.
    log: the file for its output, for launchers of this machine.
    """

    name: str
    module: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    resources: JobResources = JobResources()
    run: str = ""
    files: str = ""
    project: str = ""
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class JobLog:
    """Output from an offset on, and the offset after it, both in bytes."""

    content: bytes
    offset: int


class LauncherUnavailable(Unavailable):
    """The engine does not answer now; what it runs goes on. The call may be repeated."""


class Launcher(Protocol):
    """Methods raise LauncherUnavailable where the engine does not answer, RewardError where it refuses.

    is_remote: the job runs on other machines, and goes on when this process ends.
    """

    name: str
    is_remote: bool

    def submit(self, job: LaunchedJob) -> Handle: ...

    def find(self, name: str) -> Handle | None:
        """Of the job that a `submit` without an answer may have left, to end it. None: it left nothing."""

    def poll(self, handle: Handle) -> JobStatus: ...

    def cancel(self, handle: Handle) -> None:
        """Ask it to write a checkpoint and end. What has ended stays as it is."""

    def kill(self, handle: Handle) -> None:
        """End it without asking."""

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        """What it printed, as far as it can be read from here."""

    def forget(self, handle: Handle) -> None:
        """Remove what an ended job leaves at the engine, secrets first."""

    def check(self) -> str:
        """That it can be used now, in a sentence. Raises RewardError with what is missing."""
