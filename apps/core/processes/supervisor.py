"""All processes of an installation on one machine: started in order, stopped together, none left behind."""

import contextlib
import fcntl
import logging
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

from django.conf import settings
from django.db import connections

from apps.core.database import embedded_postgres
from apps.core.database.migration_state import require_known_migrations
from apps.core.database.outage import is_outage
from apps.core.database.process_database import OWNER_VARIABLE, adopt
from apps.core.environment import env_str
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import broker
from apps.core.processes.child_process import Process
from apps.core.storage import private_files
from apps.core.storage.disk_space import require_writable
from apps.core.storage.store_identity import require_own_store

log = logging.getLogger(__name__)

READY_SECONDS = 180.0
GRACE_SECONDS = 20.0  # a training process writes its checkpoint meanwhile
LOOK_SECONDS = 1.0
LONGEST_PAUSE = 30.0  # seconds before a process that dies repeatedly is restarted
PREPARE_TRIES = 3
MOST_FAILED_STARTS = 3  # failed starts in a row before `check` gives up
_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)  # ends that say nothing of whether a process can start


class MigrateFailed(DomainError):
    """What `migrate` news last."""


@dataclass
class SupervisedProcess:
    """A process that is started again when it dies, after a pause that grows while it does not get ready."""

    name: str
    command: tuple[str, ...]
    process: Process
    failures: int = 0  # starts in a row that did not get as far as being ready
    own_failures: int = 0  # of these, how many ended by themselves
    restart_at: float | None = None  # when it is started again; None while it runs

    def check_exit(self) -> str | None:
        """What there is to say of it, if it died since the last look."""
        if self.process.is_ready:
            self.failures = self.own_failures = 0
        if self.restart_at is not None or self.process.status is None:
            return None
        self.failures += 1
        self.own_failures += self.process.status not in _FROM_OUTSIDE
        pause = min(2.0 ** (self.failures - 1) - 1, LONGEST_PAUSE) if self.process.was_quick else 0.0
        self.restart_at = time.monotonic() + pause
        again = f"in {pause:.0f} s" if pause else "now"
        return f"{self.process.how_it_ended}; it is started again {again}. Its log: {self.process.log.name}"


@dataclass
class Stack:
    """All processes of an installation. Use `running()`; `wait()` keeps them running until interrupted."""

    home: Path
    host: str
    port: int
    rewards_port: int
    out: IO[str] | None
    processes: list[SupervisedProcess] = field(default_factory=list)
    postgres: embedded_postgres.PostgresServer | None = None
    _changed: threading.Event = field(default_factory=threading.Event)
    _away_at: float = -LONGEST_PAUSE  # when the database was last seen not to answer

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
        if closed := private_files.close_home(self.home, wholly=True):
            self._print_line(
                f"closed {closed} files and folders of {self.home} to other users of this machine"
            )
        if settings.DATABASE_IS_EMBEDDED:
            self._print_line("starting PostgreSQL")
            self.postgres = embedded_postgres.start(self.home)
        self._adopt()
        self._prepare_database()
        for name, command in self._commands().items():
            self.processes.append(SupervisedProcess(name, command, self._spawn(name, command)))
        self._await_ready(time.monotonic() + READY_SECONDS)

    def _await_ready(self, deadline: float) -> None:
        """Until all are. Raises DomainError when one cannot be started, or takes too long."""
        while waiting := [each for each in self.processes if not each.process.is_ready]:
            self._changed.wait(0.1)
            self._changed.clear()
            self.check()
            if time.monotonic() > deadline:
                late = waiting[0].process
                raise DomainError(f"{late.name} was not ready in time; see {late.log.name}.")

    def wait(self) -> None:
        """Block until interrupted; restart what dies."""
        while True:
            self._changed.wait(LOOK_SECONDS)
            self._changed.clear()
            self.restart_dead()

    def restart_dead(self) -> None:
        """Start again what died, the database before all others. From the main thread: children end with theirs."""
        self._restart_postgres()
        for each in self.processes:
            if (news := each.check_exit()) is not None:
                self._print_line(news)
                if not self._database_answers():
                    self._away_at = time.monotonic()
            if each.restart_at is not None and time.monotonic() >= each.restart_at:
                each.process.end(time.monotonic())  # what is left of its group
                each.process, each.restart_at = self._spawn(each.name, each.command), None

    def check(self) -> None:
        """`restart_dead`, but raises DomainError when a process fails to start again and again.

        What ends while the database is away, or has just come back, will start when it is there.
        """
        self.restart_dead()
        if time.monotonic() - self._away_at < LONGEST_PAUSE:
            return
        hopeless = next((each for each in self.processes if each.own_failures >= MOST_FAILED_STARTS), None)
        if hopeless is not None and hopeless.process.status is not None:
            raise DomainError(hopeless.process.exit_report())

    def stop(self) -> None:
        """Stop everything, postgres last. Safe to call at any point of the start."""
        for each in reversed(self.processes):
            each.process.ask_to_end()
        deadline = time.monotonic() + GRACE_SECONDS
        for each in reversed(self.processes):
            each.process.end(deadline)
        self.processes.clear()
        connections.close_all()
        if self.postgres is not None:
            self.postgres.stop()

    def _commands(self) -> dict[str, tuple[str, ...]]:
        return {
            "rewards": ("rewards", f"--port={self.rewards_port}"),
            "web": ("web", f"--host={self.host}", f"--port={self.port}"),
            "default": ("worker", "default"),
            "gpu": ("worker", "gpu"),
            "beat": ("beat",),
        }

    def _spawn(self, name: str, command: tuple[str, ...]) -> Process:
        return Process(
            name,
            command,
            home=self.home,
            environment=self._environment(name),
            out=self.out,
            ended=self._changed.set,
        )

    def _prepare_database(self) -> None:
        """Migrations and the broker's tables; begun again where the database went away in the midst of them."""
        for attempt in range(1, PREPARE_TRIES + 1):
            try:
                require_known_migrations()
                self._migrate()
                broker.prepare()
                require_own_store(writes=True)
            except Exception as error:
                is_away = any(is_outage(each) for each in (error, error.__cause__) if each is not None)
                if attempt == PREPARE_TRIES or not (is_away or isinstance(error, MigrateFailed)):
                    raise
                self._print_line(f"the database was not prepared, it is tried again: {error}")
                connections.close_all()
                time.sleep(attempt)
                self._restart_postgres()
            else:
                return

    def _migrate(self) -> None:
        # The system checks import every page; `web` makes them a moment later.
        migrate = self._spawn("migrate", ("migrate", "--no-input", "--verbosity=1", "--skip-checks"))
        try:
            migrate.wait_done()
        except DomainError as error:
            raise MigrateFailed(error.message) from error
        finally:
            migrate.end(time.monotonic())
        self._changed.clear()

    def _environment(self, name: str) -> dict[str, str]:
        rewards = filter(None, [self.rewards_url, env_str("TOUCHSTONE_REWARDS_ADDRESS", "")])
        given = {
            "TOUCHSTONE_HOME": str(self.home),
            "TOUCHSTONE_PUBLIC_URL": env_str("TOUCHSTONE_PUBLIC_URL", self.url),
            "TOUCHSTONE_REWARDS_ADDRESS": ",".join(
                rewards
            ),  # ours, and those of the operator that run next to it
        }
        left_out = {f"{each}_FILE" for each in given}
        if name != "migrate":  # the others have no use for the role that owns the tables
            left_out |= {OWNER_VARIABLE, f"{OWNER_VARIABLE}_FILE"}
        return {each: value for each, value in os.environ.items() if each not in left_out} | given

    def _adopt(self) -> None:
        """Let this process, whose settings were read before the start, use what was started too."""
        settings.REWARDS_ADDRESS = self.rewards_url
        settings.PUBLIC_URL = env_str("TOUCHSTONE_PUBLIC_URL", self.url)
        if self.postgres is not None:
            adopt(self.postgres)

    def _restart_postgres(self) -> None:
        """A server that died is started again on its port, or, where that is taken by now, everything on another."""
        if self.postgres is None:
            return
        process, port = self.postgres.process, self.postgres.connection.port
        gone = process.poll() is not None if process is not None else not self.postgres.answers()
        if not gone:
            return
        self._away_at = time.monotonic()
        how = f" with exit status {process.returncode}" if process is not None else ""
        self._print_line(f"postgres ended{how}; it is started again. Its log: {self.home}/logs/postgres.log")
        try:
            self.postgres = embedded_postgres.start(self.home)
        except DomainError as error:
            self._print_line(f"{error.message}\nIt is tried again in {LONGEST_PAUSE:.0f} s.")
            time.sleep(LONGEST_PAUSE)
            return
        self._adopt()
        if self.postgres.connection.port != port:
            for each in self.processes:
                each.process.ask_to_end()

    def _database_answers(self) -> bool:
        try:
            connections["default"].close()
            connections["default"].ensure_connection()
        except Exception as error:
            if not is_outage(error):
                raise
            return False
        return True

    def _print_line(self, text: str) -> None:
        if self.out is not None:
            self.out.write(f"{text}\n")
            self.out.flush()
        else:
            log.warning(text)


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
    require_writable(home)
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
