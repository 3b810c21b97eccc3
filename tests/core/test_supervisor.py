"""The real thing: every process of a home, started, killed and stopped. Tests share what runs."""

import contextlib
import io
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from django.db import OperationalError

from apps.core.processes import supervisor
from tests.core.homes import open_home
from tests.migrated import fill_home
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with open_home() as home:
        fill_home(home)
        yield home


class Up:
    def __init__(self, home: Path) -> None:
        self.port, self.rewards_port = free_port(), free_port()
        self.popen = _manage(home, "up", f"--port={self.port}", f"--rewards-port={self.rewards_port}")
        self.lines: list[str] = []
        self.up = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.up.wait(360), "\n".join(self.lines)
        assert self.popen.poll() is None, "\n".join(self.lines)
        self.family = psutil.Process(self.popen.pid).children(recursive=True)

    def get(self, path: str, **kwargs: object) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=30, trust_env=False, **kwargs)  # type: ignore[arg-type]

    def named(self, command: str, *, first: bool = False) -> psutil.Process:
        """The process with `command` as its last word, or `first` the one whose program is called so. It may be new."""
        until(lambda: self._find(command, first) is not None)
        found = self._find(command, first)
        assert found is not None
        return found

    def _find(self, command: str, first: bool) -> psutil.Process | None:
        for each in psutil.Process(self.popen.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                words = each.cmdline()
                if words and (Path(words[0]).name if first else words[-1]) == command:
                    self.family.append(each)
                    return each
        return None

    def await_line(self, pattern: str) -> None:
        until(lambda: any(re.search(pattern, line) for line in self.lines))

    def wait(self) -> int:
        """Its exit status, when it and all it started are gone."""
        status = self.popen.wait(120)
        self._reader.join()
        _, alive = psutil.wait_procs(self.family, timeout=30)
        assert alive == []
        return status

    def _read(self) -> None:
        assert self.popen.stdout is not None
        with self.popen.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                if "Touchstone is up at" in line:
                    self.up.set()
        self.up.set()


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Callable[[], Up]]:
    """Gives what runs on the home, started again where a test ended it: a start takes a dozen seconds of CPU."""
    last: Up | None = None

    def up() -> Up:
        nonlocal last
        if last is None or last.popen.poll() is not None:
            last = Up(home)
        return last

    yield up
    if last is not None and last.popen.poll() is None:
        last.popen.kill()
        last.wait()


@pytest.fixture
def up(running: Callable[[], Up]) -> Up:
    return running()


def _manage(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    ours = ("DATABASE_URL", "CELERY_BROKER_URL", "TOUCHSTONE_HOME", "TOUCHSTONE_REWARDS_URL")
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments, "--home", str(home)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell ignores Ctrl-C for what it runs in the background, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def until(true: Callable[[], bool], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.1)


def test_up_serves(home: Path, up: Up) -> None:
    assert up.get("/healthz").text == "ok"
    proxied, direct = (
        up.get("/api/v1/rewards/nothing/"),
        httpx.get(f"http://127.0.0.1:{up.rewards_port}/api/v1/rewards/nothing/", trust_env=False),
    )
    assert (proxied.status_code, proxied.content) == (direct.status_code, direct.content)
    assert proxied.status_code == 401
    assert up.get("/static/css/touchstone.css").headers["content-type"].startswith("text/css")
    assert (home / "rewards-address").read_text() == f"http://127.0.0.1:{up.rewards_port}"

    second = _manage(home, "up", f"--port={free_port()}", f"--rewards-port={free_port()}")
    said, _ = second.communicate(timeout=360)
    assert second.returncode == 1
    assert re.search(rf"Error: Touchstone is already running on .*process {up.popen.pid}", said)

    examined, _ = _manage(home, "doctor").communicate(timeout=360)
    assert "FAIL" not in examined
    (home / "items.jsonl").write_text('{"text": "hello"}\n')
    scored, _ = _manage(home, "score", "nothing", str(home / "items.jsonl")).communicate(timeout=360)
    assert "There is no endpoint" in scored  # it found the service on its port, though no one told it

    names = {line.split("|")[0].strip() for line in up.lines if "|" in line}
    assert {"web", "rewards", "default", "gpu", "beat", "migrate"} <= names


@pytest.mark.parametrize("command", ["beat", "gpu"])
def test_what_dies_is_started_again(up: Up, command: str) -> None:
    dead = up.named(command)
    dead.kill()
    up.await_line(rf"{command} was killed by SIGKILL; it is started again now")
    until(lambda: up.named(command).pid != dead.pid)


def test_a_killed_database_comes_back_on_its_port_and_all_go_on(home: Path, up: Up) -> None:
    until(lambda: up.get("/login").status_code == 200)
    connection = (home / "postgres.json").read_text()
    server = up.named("postgres", first=True)
    server.kill()
    up.await_line(r"postgres ended with exit status -9; it is started again")
    until(lambda: up.named("postgres", first=True).pid != server.pid)
    assert (home / "postgres.json").read_text() == connection
    until(lambda: up.get("/login").status_code == 200)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.long),  # a second start
    ],
)
def test_ended_by_ctrl_c_or_killed_it_leaves_nothing_behind(home: Path, up: Up, sent: signal.Signals) -> None:
    """Also of what was started again meanwhile."""
    up.popen.send_signal(sent)
    assert up.wait() == (0 if sent == signal.SIGINT else -signal.SIGKILL)
    if sent == signal.SIGINT:
        assert not (home / "rewards-address").exists()


def test_a_process_that_cannot_start_is_tried_again_after_growing_pauses(tmp_path: Path) -> None:
    class Dead:
        is_ready, status, was_quick, how_it_ended = False, 1, True, "web ended with exit status 1"
        log = None

    tended, pauses = supervisor.SupervisedProcess("web", ("web",), Dead()), []  # type: ignore[arg-type]
    tended.process.log = (tmp_path / "web.log").open("w")
    for _ in range(8):
        assert "web ended with exit status 1; it is started again" in (tended.check_exit() or "")
        assert tended.check_exit() is None  # said once
        pauses.append(round((tended.restart_at or 0) - time.monotonic()))
        tended.restart_at = None
    assert pauses == [0, 1, 3, 7, 15, 30, 30, 30]
    tended.process.is_ready = True  # type: ignore[misc]
    tended.check_exit()
    assert tended.failures == 1
    tended.process.log.close()


def test_a_taken_port_is_refused_in_words(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = _manage(home, "up", f"--port={port}", f"--rewards-port={free_port()}")
        said, _ = process.communicate(timeout=360)
    assert process.returncode == 1
    assert f"Error: 127.0.0.1:{port} is taken" in said
    assert "choose another with --port" in said


@pytest.mark.long
def test_it_runs_as_an_ordinary_user_on_an_empty_home() -> None:
    """The other tests run it as whoever runs them, in CI often root, and on a home that is migrated."""
    with open_home() as home, open_home() as programs:
        who = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        python, path = _python_for_all(programs) if os.geteuid() == 0 else (sys.executable, "")
        os.chown(home, who.pw_uid, who.pw_gid)
        port = free_port()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": path}
        environment["LD_LIBRARY_PATH"] = str(programs / "lib")
        process = subprocess.Popen(
            [
                python,
                "manage.py",
                "up",
                f"--port={port}",
                f"--rewards-port={free_port()}",
                "--home",
                str(home),
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **({"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}),  # type: ignore[arg-type]
        )
        try:
            address = f"http://127.0.0.1:{port}/login"
            until(lambda: process.poll() is not None or _status(address) == 200, 360)
            if process.poll() is None:
                assert {path.stat().st_uid for path in home.rglob("*")} == {who.pw_uid}
        finally:
            process.terminate()
            said, _ = process.communicate(timeout=180)
        assert process.returncode == 0, said[-3000:]


def _status(address: str) -> int | None:
    try:
        return httpx.get(address, timeout=5, trust_env=False).status_code
    except httpx.TransportError:
        return None


def _python_for_all(folder: Path) -> tuple[str, str]:
    """An interpreter that everyone may run, and the path of what is installed: root's own may lie in a closed home."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    base, version = Path(sys.base_prefix), f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (folder / "bin").mkdir()
    shutil.copy2(base / "bin" / version, folder / "bin" / version)
    left_out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "idlelib", "config-*")
    shutil.copytree(base / "lib" / version, folder / "lib" / version, ignore=left_out)
    for library in (base / "lib").glob("libpython3*.so*"):
        shutil.copy2(library, folder / "lib" / library.name)
    for each_path in folder.rglob("*"):
        if each_path.is_dir():
            each_path.chmod(0o755)
    return str(folder / "bin" / version), f"{packages}:{ROOT / 'client'}"


def test_a_database_that_goes_away_while_it_is_prepared_is_prepared_again(tmp_path, monkeypatch):
    out = io.StringIO()
    stack = supervisor.Stack(tmp_path, "127.0.0.1", 0, 0, out)
    failures: list[Exception] = [
        supervisor.MigrateFailed("migrate ended with 1"),
        OperationalError("terminated"),
    ]

    def migrate(self: supervisor.Stack) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(supervisor.Stack, "_migrate", migrate)
    monkeypatch.setattr(supervisor, "require_known_migrations", lambda: None)
    monkeypatch.setattr(supervisor, "require_own_store", lambda *, writes: "")
    monkeypatch.setattr(supervisor.broker, "prepare", lambda: None)
    monkeypatch.setattr(supervisor.time, "sleep", lambda seconds: None)
    stack._prepare_database()
    assert out.getvalue().count("it is tried again") == 2
    failures += [supervisor.MigrateFailed("a migration that cannot work")] * 3
    with pytest.raises(supervisor.MigrateFailed, match="cannot work"):
        stack._prepare_database()


class _Dead:
    """A process that ends at once, however often it is started."""

    is_ready, was_quick, status = False, True, 1
    how_it_ended = "gpu ended with exit status 1"
    log = Path("gpu.log")

    def exit_report(self) -> str:
        return self.how_it_ended

    def end(self, deadline: float) -> None: ...


def test_what_ends_while_the_database_is_away_is_not_given_up(tmp_path, monkeypatch):
    stack = supervisor.Stack(tmp_path, "127.0.0.1", 0, 0, io.StringIO())
    is_there = False
    monkeypatch.setattr(supervisor.Stack, "_database_answers", lambda self: is_there)
    monkeypatch.setattr(supervisor.Stack, "_spawn", lambda self, name, command: _Dead())
    stack.processes = [supervisor.SupervisedProcess("gpu", ("worker", "gpu"), _Dead(), own_failures=5)]  # type: ignore[arg-type]
    stack.check()
    is_there = True
    stack._away_at -= supervisor.LONGEST_PAUSE
    stack.processes[0].restart_at = None
    with pytest.raises(supervisor.DomainError, match="exit status 1"):
        stack.check()


def test_what_is_killed_from_outside_is_not_given_up(tmp_path, monkeypatch):
    """Three ends while all get ready are no reason to end everything, unless it ended by itself."""
    stack = supervisor.Stack(tmp_path, "127.0.0.1", 0, 0, io.StringIO())
    monkeypatch.setattr(supervisor.Stack, "_database_answers", lambda self: True)
    monkeypatch.setattr(supervisor.Stack, "_spawn", lambda self, name, command: web)
    web = _Dead()
    stack.processes = [supervisor.SupervisedProcess("web", ("web",), web)]  # type: ignore[arg-type]
    for status in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGKILL, 1, 1):
        web.status, stack.processes[0].restart_at = status, None
        stack.check()
    assert stack.processes[0].failures == 5
    stack.processes[0].restart_at = None
    with pytest.raises(supervisor.DomainError, match="exit status 1"):
        stack.check()
