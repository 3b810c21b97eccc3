"""A whole installation on a home of its own, handled from outside as an operator, or fate, would."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from tests.faults.outside import Wire
from tests.forked_programs import command_of, home_of
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
BUSY = 3  # times as long as on a quiet machine a thing may take on one that does other work too
SILENCE = 3  # seconds until a silent worker's job is taken up by another one; 30 in real life
_OURS = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "TOUCHSTONE_HOME",
    "DJANGO_SETTINGS_MODULE",
    "TOUCHSTONE_READY_FD",
)
SUPERVISED = ("web", "rewards", "default", "gpu", "beat")
INSIDE = ("postgres", "backend", "auxiliary", "training")
_NAMES = {("worker", "default"): "default", ("worker", "gpu"): "gpu", ("up",): "supervisor"}


def until(true: Callable[[], object], seconds: float, what: str) -> None:
    """Raise AssertionError unless it comes true in time; a refused connection is not yet true.

    seconds: on a quiet machine.
    """
    deadline = time.monotonic() + BUSY * seconds
    while True:
        with contextlib.suppress(httpx.TransportError, psycopg.OperationalError):
            if true():
                return
        assert time.monotonic() < deadline, f"after {BUSY * seconds:g} s: {what}"
        time.sleep(0.1)


class Stack:
    """`manage.py up` on `home`. environment: settings next to those of the harness.

    wires: by which it reaches servers that are not its own. direct: its database, past them, for those who check.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str] | None = None,
        *,
        wires: Mapping[str, Wire] | None = None,
        direct: str | None = None,
    ) -> None:
        self.home = home
        self.wires, self.direct = dict(wires or {}), direct
        self.port, self.rewards_port = free_port(), free_port()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in _OURS},
            "TOUCHSTONE_HOME": str(home),
            "TOUCHSTONE_JOB_SILENCE_SECONDS": str(SILENCE),
            "TOUCHSTONE_LOG_LEVEL": "INFO",
            "OMP_NUM_THREADS": "1",
            **(environment or {}),
        }
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.extras: dict[str, tuple[tuple[str, ...], subprocess.Popen[bytes]]] = {}
        self.output = home / "up.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rewards_url(self) -> str:
        return f"http://127.0.0.1:{self.rewards_port}"

    @property
    def database_url(self) -> str:
        if url := self.direct or self.environment.get("DATABASE_URL"):
            return url
        told = json.loads((self.home / "postgres.json").read_text())
        return f"postgresql://touchstone:{told['password']}@127.0.0.1:{told['port']}/touchstone"

    def start(self, *, ready: bool = True) -> None:
        command = ("up", f"--port={self.port}", f"--rewards-port={self.rewards_port}")
        self.supervisor = self.manage(*command)
        if ready:
            self.await_ready()

    def await_ready(self, seconds: float = 120.0) -> None:
        def ready() -> bool:
            if self.supervisor is not None and self.supervisor.poll() is not None:
                raise AssertionError(f"up ended with {self.supervisor.returncode}:\n{self.said()}")
            answers = [
                httpx.get(f"{self.url}{path}", trust_env=False, timeout=5) for path in ("/healthz", "/login")
            ]
            rewards = httpx.get(f"{self.rewards_url}/readyz", trust_env=False, timeout=5)
            return all(answer.status_code == 200 for answer in (*answers, rewards))

        until(ready, seconds, f"the stack is not ready:\n{self.said()}")

    def manage(self, *command: str) -> "subprocess.Popen[bytes]":
        """A command of this installation; what it says goes to the end of up.log."""
        with self.output.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "manage.py", *command],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def call(self, *command: str) -> dict[str, Any]:
        """The `--json` answer of a command. Raises CalledProcessError."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command, "--json"],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def add(self, name: str, *command: str) -> None:
        """One more process of the installation, outside of the supervisor; `tend` keeps it alive."""
        self.extras[name] = (command, self.manage(*command))

    def tend(self) -> None:
        for name, (command, process) in list(self.extras.items()):
            if process.poll() is not None:
                self.extras[name] = (command, self.manage(*command))

    def said(self, lines: int = 80) -> str:
        if not self.output.exists():
            return ""
        return "\n".join(self.output.read_text(errors="replace").splitlines()[-lines:])

    def logged(self) -> str:
        """All that its processes have said."""
        paths = (self.output, *sorted((self.home / "logs").iterdir()))
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def tracebacks(self, most: int = 3) -> list[str]:
        """The ends of the last errors that no one expected, from all logs."""
        found = []
        for path in (self.output, *sorted((self.home / "logs").iterdir())):
            for part in path.read_text(errors="replace").split("Traceback (most recent call last)")[1:]:
                lines = part.splitlines()
                end = next((n for n, line in enumerate(lines[1:], 1) if not line.startswith(" ")), len(lines))
                found.append("\n".join([path.name, *lines[max(0, end - 8) : end + 1]]))
        return found[-most:]

    @contextlib.contextmanager
    def database(self) -> Iterator["psycopg.Connection[Any]"]:
        with psycopg.connect(self.database_url, autocommit=True, connect_timeout=5) as connection:
            yield connection

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self.database() as db:
            return db.execute(sql, values or None).fetchall()  # type: ignore[arg-type]

    def processes(self, name: str) -> list[psutil.Process]:
        """Those that run now, by what they are: of SUPERVISED and INSIDE, `supervisor`, or of the extras."""
        return [process for process in family(self.home) if kind_of(process) == name]

    def signal(self, name: str, sent: signal.Signals, which: int = 0) -> bool:
        """Send a signal to one of them; False where there is none."""
        found = self.processes(name)
        if not found:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            found[which % len(found)].send_signal(sent)
            return True
        return False

    def wake(self) -> None:
        """Whoever was paused goes on, and every wire is whole."""
        for wire in self.wires.values():
            wire.mend()
        for process in family(self.home):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() == psutil.STATUS_STOPPED:
                    process.resume()

    def kill_supervisor(self) -> None:
        assert self.supervisor is not None
        self.supervisor.kill()
        self.supervisor.wait()

    def stop(self, seconds: float = 60.0) -> int:
        """End all of it as an init system does; the supervisor's exit status."""
        self.wake()
        for _, process in self.extras.values():
            process.terminate()
        assert self.supervisor is not None
        self.supervisor.terminate()
        try:
            status = self.supervisor.wait(BUSY * seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the supervisor does not stop:\n{self.said()}") from None
        for name, (_, process) in self.extras.items():
            try:
                process.wait(BUSY * seconds)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} does not stop:\n{self.said()}") from None
        self.extras.clear()
        return status

    def destroy(self) -> None:
        """Whatever is left of it, at once."""
        for process in family(self.home):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for each in (self.supervisor, *(process for _, process in self.extras.values())):
            if each is not None:
                each.wait(30)


def family(home: Path) -> list[psutil.Process]:
    """Every process that works for this home, by its environment or command line: no matter who its parent is."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = command_of(process)
            if str(home) in " ".join(words) or home_of(process) == str(home):
                found.append(process)
            elif words[:1] and words[0].startswith("postgres:"):
                parent = process.parent()
                if parent is not None and str(home) in " ".join(parent.cmdline()):
                    found.append(process)
    return found


def kind_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        words = command_of(process)
        if not words:
            return ""
        if Path(words[0]).name == "postgres":
            return "postgres"
        if words[0].startswith("postgres:"):
            return "backend" if "touchstone" in words[0] else "auxiliary"
        if "workers.train" in words or "workers.evaluate" in words:
            return "training"
        if "manage.py" not in " ".join(words):
            return ""
        place = next(index for index, word in enumerate(words) if word.endswith("manage.py"))
        command = tuple(word for word in words[place + 1 :] if not word.startswith("-"))
        return _NAMES.get(command, command[0] if command else "")
    return ""
