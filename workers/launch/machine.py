"""A joined machine: it asks its installation for runs, trains them, and reports how they end, over HTTPS only.

Of the installation it takes names and numbers, never a command or a path of this machine: each job is
`python -m workers.launch` of this distribution, in a folder that is emptied after it. What stays between jobs is the
machine's key and pretrained weights (`part_cache`).
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from workers.errors import RewardError, Unavailable
from workers.launch.host_run import end_with_parent
from workers.launch.job import ENTRY, TOKEN_VARIABLE, URL_VARIABLE
from workers.launch.machine_calls import (
    LONGEST_LOG,
    InstallationCalls,
    JobReport,
    JobTaken,
    MachineInfo,
    OfferedJob,
    training_code_hash,
)

_ROOT = Path(__file__).parents[2]
_TICK = 0.5  # seconds between looks at a training, at most
_GRACE = 120.0  # seconds that a training has to write a checkpoint when this process is stopped
_AWAY = (
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
)  # seconds between claims while the installation does not answer; the last repeats
_REPORT_WAITS = (
    1.0,
    2.0,
    5.0,
    10.0,
    *(30.0,) * 20,
)  # about ten minutes, in which an installation is upgraded
_OURS = "TOUCHSTONE_"  # variables of the environment that no training needs
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Say = Callable[[str], None]


class MachineIdentity(msgspec.Struct, frozen=True):
    """What a machine keeps of the installation that it joined."""

    url: str
    key: str
    name: str
    project: str


def check_url(url: str, *, plain: bool = False) -> str:
    """The address without a path. Raises RewardError for one that is none, and for http:// to another machine unless
    `plain`."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise RewardError(f"{url!r} is not an address such as https://touchstone.example.org.")
    if parts.path.strip("/"):
        raise RewardError(f"{url!r} has a path; give the address of the installation without one.")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not plain:
        raise RewardError(
            f"{url} is not encrypted: the key of this machine and all data would be readable on the way. Use https://, "
            "an SSH tunnel to 127.0.0.1, or --plain-http within a private network."
        )
    return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    return host in _LOOPBACK


def describe_machine(version: str) -> MachineInfo:
    """Of this machine, as torch finds it. Raises RewardError where torch does not load."""
    command = [sys.executable, "-m", "workers.device", "--describe"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise RewardError(f"torch does not load on this machine: {last}. Install it before joining.")
    found = json.loads(done.stdout)
    return MachineInfo(
        device=found["device"][:120],
        gpus=found["gpus"],
        version=version,
        code_hash=training_code_hash(),
    )


def read_identity(folder: Path) -> MachineIdentity | None:
    path = folder / "machine.json"
    return msgspec.json.decode(path.read_bytes(), type=MachineIdentity) if path.is_file() else None


def write_identity(folder: Path, identity: MachineIdentity) -> None:
    """Readable by this user only: it has the key."""
    part = folder / "machine.json.part"
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(msgspec.json.encode(identity))
    part.replace(folder / "machine.json")


@contextmanager
def machine_folder(folder: Path) -> Iterator[None]:
    """Locked: two processes with one key would take each other's jobs. Raises RewardError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RewardError(
                f"Another `touchstone join` uses {folder}; stop it, or give this one another --home."
            ) from None
        yield


class JoinedMachine:
    """Claims jobs and trains them, one at a time, until it is stopped or refused."""

    def __init__(self, calls: InstallationCalls, machine: MachineInfo, folder: Path, *, say: Say) -> None:
        """folder: of this machine, for jobs and weights. say: prints a line."""
        self._calls, self._machine, self._folder, self._say = calls, machine, folder, say
        self._stop = threading.Event()
        self._is_away = False

    def stop(self, number: int = signal.SIGTERM, frame: object = None) -> None:
        """A training writes a checkpoint and ends; another machine, or this one later, goes on with it."""
        self._stop.set()

    def work(self, *, once: bool = False) -> int:
        """The number of jobs that were trained. once: end after the first. Raises MachineRefused."""
        trained, failures = 0, 0
        while not self._stop.is_set():
            try:
                answer = self._calls.claim(self._machine)
            except Unavailable as error:
                self._note_away(error)
                self._stop.wait(_AWAY[min(failures, len(_AWAY) - 1)])
                failures += 1
                continue
            failures = 0
            self._note_back()
            if answer.job is None:
                self._stop.wait(answer.wait_seconds)
                continue
            self._train(answer.job)
            trained += 1
            if once:
                break
        return trained

    def _train(self, job: OfferedJob) -> None:
        self._say(f"{job.run}: training ({job.name})")
        scratch = self._folder / "jobs"
        _empty(scratch)
        log = scratch / "output.txt"
        try:
            with log.open("wb") as out:
                status = self._follow(job, self._start(job, scratch, out))
            self._calls.end(
                job.number, JobReport(exit_status=status, log=_last_lines(log)), waits=_REPORT_WAITS
            )
            self._say(f"{job.run}: {_how_it_ended(status)}")
        except JobTaken as error:
            self._say(f"{job.run}: ended here. {error.message}")
        except Unavailable as error:  # the installation notices that nothing is heard of the job
            self._note_away(error)
        finally:
            _empty(scratch)  # with the data of the project

    def _start(self, job: OfferedJob, scratch: Path, out: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", ENTRY, "--processes", str(job.processes), "--name", job.name]
        command += ["--scratch", str(scratch), "--cache", str(self._folder / "weights")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        environment |= {URL_VARIABLE: f"{self._calls.url}{job.files}", TOKEN_VARIABLE: job.token}
        return subprocess.Popen(  # noqa: S603 - our own module
            command,
            env=environment,
            cwd=_ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )

    def _follow(self, job: OfferedJob, child: subprocess.Popen[bytes]) -> int:
        """Its exit status. Raises JobTaken, MachineRefused; the child has ended then."""
        try:
            return self._wait(job, child)
        finally:
            _kill(child)

    def _wait(self, job: OfferedJob, child: subprocess.Popen[bytes]) -> int:
        tick = min(_TICK, job.heartbeat_seconds)
        heartbeat_at, asked_at = time.monotonic() + job.heartbeat_seconds, 0.0
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(tick)
            now, is_cancelled = time.monotonic(), False
            if now >= heartbeat_at:
                is_cancelled = self._heartbeat(job)
                heartbeat_at = time.monotonic() + job.heartbeat_seconds
            if (is_cancelled or self._stop.is_set()) and not asked_at:
                asked_at = now
                child.send_signal(signal.SIGTERM)
            if self._stop.is_set() and now - asked_at > _GRACE:
                _kill(child)

    def _heartbeat(self, job: OfferedJob) -> bool:
        """Whether the run was cancelled. While the installation is away the training goes on."""
        try:
            answer = self._calls.heartbeat(job.number)
        except Unavailable as error:
            self._note_away(error)
            return False
        self._note_back()
        return answer.is_cancelled

    def _note_away(self, error: RewardError) -> None:
        if not self._is_away:
            self._say(f"{error.message} It is tried again.")
        self._is_away = True

    def _note_back(self) -> None:
        if self._is_away:
            self._say(f"{self._calls.url} answers again.")
        self._is_away = False


def _kill(child: subprocess.Popen[bytes]) -> None:
    """With everything that it started, which is in its session."""
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _last_lines(log: Path) -> str:
    with log.open("rb") as source:
        source.seek(max(0, log.stat().st_size - LONGEST_LOG))
        return source.read().decode("utf-8", "replace")[-LONGEST_LOG:]


def _how_it_ended(status: int) -> str:
    if status == 0:
        return "trained"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
