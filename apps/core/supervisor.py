"""All processes of an installation on one machine: started in order, stopped together, none left behind."""

import contextlib
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

import dj_database_url
from celery import current_app
from django.conf import settings
from django.db import connections

from apps.core import broker, embedded
from apps.core.errors import Conflict, DomainError
from apps.core.processes import Process

READY_SECONDS = 180.0
GRACE_SECONDS = 8.0


@dataclass
class Stack:
    """What runs. Use `running()`; `wait()` returns when a process died or somebody asked to stop."""

    home: Path
    host: str
    port: int
    rewards_port: int
    out: IO[str] | None
    processes: list[Process] = field(default_factory=list)
    postgres: embedded.Server | None = None
    _something: threading.Event = field(default_factory=threading.Event)
    _asked: str = ""

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        return f"http://{host}:{self.port}"

    @property
    def rewards_url(self) -> str:
        return f"http://127.0.0.1:{self.rewards_port}"

    def start(self) -> None:
        for port, option in ((self.port, "--port"), (self.rewards_port, "--rewards-port")):
            _await_free(self.host if option == "--port" else "127.0.0.1", port, option)
        if settings.DATABASE_IS_EMBEDDED:
            self._say("starting PostgreSQL")
            self.postgres = embedded.start(self.home)
        self._adopt()
        migrate = self._spawn("migrate", "migrate", "--no-input", "--verbosity=1")
        migrate.wait_done()
        self.processes.remove(migrate)
        migrate.end(time.monotonic() + 1)
        self._something.clear()
        broker.prepare()
        self._spawn("rewards", "rewards", f"--port={self.rewards_port}")
        self._spawn("web", "web", f"--host={self.host}", f"--port={self.port}")
        self._spawn("default", "worker", "default")
        self._spawn("gpu", "worker", "gpu")
        self._spawn("beat", "beat")
        deadline = time.monotonic() + READY_SECONDS
        for process in self.processes:
            process.wait_ready(deadline)

    def wait(self) -> None:
        """Until `ask_to_stop` was called. Raises DomainError when a process died."""
        while not self._something.wait(2.0):
            self._check_postgres()
        self.check()

    def check(self) -> None:
        """Raise DomainError when a process died."""
        self._check_postgres()
        dead = [process for process in self.processes if process.status is not None]
        if dead and not self._asked:
            raise DomainError(dead[0].obituary())

    def ask_to_stop(self, why: str) -> None:
        self._asked = why
        self._something.set()

    def stop(self) -> None:
        """Stop everything, postgres last. Safe to call at any point of the start."""
        self._asked = self._asked or "stop"
        for process in reversed(self.processes):
            process.ask_to_end()
        deadline = time.monotonic() + GRACE_SECONDS
        for process in reversed(self.processes):
            process.end(deadline)
        self.processes.clear()
        connections.close_all()
        if self.postgres is not None:
            self.postgres.stop()

    def _spawn(self, name: str, *command: str) -> Process:
        process = Process(
            name,
            command,
            home=self.home,
            environment=self._environment(),
            out=self.out,
            ended=self._something.set,
        )
        self.processes.append(process)
        return process

    def _environment(self) -> dict[str, str]:
        public = {"TOUCHSTONE_PUBLIC_URL": self.url} if "TOUCHSTONE_PUBLIC_URL" not in os.environ else {}
        return {
            **os.environ,
            **public,
            "TOUCHSTONE_HOME": str(self.home),
            "TOUCHSTONE_REWARDS_ADDRESS": self.rewards_url,
        }

    def _adopt(self) -> None:
        """Let this process, whose settings were read before the start, use what was started too."""
        settings.REWARDS_ADDRESS = self.rewards_url
        settings.PUBLIC_URL = os.environ.get("TOUCHSTONE_PUBLIC_URL", self.url)
        if self.postgres is None:
            return
        connections["default"].close()
        connections["default"].settings_dict.update(dj_database_url.parse(self.postgres.url))
        if not os.environ.get("CELERY_BROKER_URL"):
            current_app.conf.broker_url = settings.CELERY_BROKER_URL = embedded.broker_url(self.home)

    def _check_postgres(self) -> None:
        if self.postgres is None:
            return
        process = self.postgres.process
        gone = process.poll() is not None if process is not None else not self.postgres.answers()
        if gone and not self._asked:
            status = f" with exit status {process.returncode}" if process is not None else ""
            raise DomainError(f"postgres ended{status}; see {self.home}/logs/postgres.log.")

    def _say(self, text: str) -> None:
        if self.out is not None:
            self.out.write(f"{text}\n")
            self.out.flush()


@contextlib.contextmanager
def running(
    *, host: str = "127.0.0.1", port: int = 8000, rewards_port: int = 8001, out: IO[str] | None = sys.stdout
) -> Iterator[Stack]:
    """The whole installation, ready; stopped at the end of the block. out: where the prefixed log lines go.

    Call it from the main thread: SIGTERM ends the block like Ctrl-C. Raises DomainError when something does not
    start, and Conflict when the home is in use.
    """
    home = settings.HOME
    with _home_lock(home), _sigterm_as_interrupt():
        stack = Stack(home, host, port, rewards_port, out)
        told = home / settings.REWARDS_ADDRESS_FILE  # for the commands that are run on this home meanwhile
        try:
            stack.start()
            told.write_text(stack.rewards_url)
            yield stack
        finally:
            told.unlink(missing_ok=True)
            stack.stop()


@contextlib.contextmanager
def _home_lock(home: Path) -> Iterator[None]:
    home.mkdir(parents=True, exist_ok=True)
    with (home / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise Conflict(
                f"Touchstone is already running on {home} (process {lock.read().strip() or 'unknown'}). Stop it, or "
                "give this one another home: --home DIR."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _await_free(host: str, port: int, option: str, patience: float = 5.0) -> None:
    """Processes of a supervisor killed a moment ago may still hold the port."""
    deadline = time.monotonic() + patience
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DomainError(
                        f"{host}:{port} is taken ({error.strerror}); choose another with {option}."
                    ) from error
            else:
                return
        time.sleep(0.1)
