"""The real thing: every process of a fresh home, started, killed and stopped."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.core.homes import open_home

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with open_home() as home:
        yield home


class Up:
    def __init__(self, home: Path) -> None:
        self.port, self.rewards_port = _free_port(), _free_port()
        self.popen = _manage(home, "up", f"--port={self.port}", f"--rewards-port={self.rewards_port}")
        self.lines: list[str] = []
        self.up = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.up.wait(120), "\n".join(self.lines)
        assert self.popen.poll() is None, "\n".join(self.lines)
        self.family = psutil.Process(self.popen.pid).children(recursive=True)

    def get(self, path: str, **kwargs: object) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=30, trust_env=False, **kwargs)  # type: ignore[arg-type]

    def named(self, command: str) -> psutil.Process:
        return next(each for each in self.family if each.cmdline()[-1] == command)

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


@contextmanager
def _up(home: Path) -> Iterator[Up]:
    up = Up(home)
    try:
        yield up
    finally:
        if up.popen.poll() is None:
            up.popen.kill()
            up.wait()


def _manage(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    ours = ("DATABASE_URL", "CELERY_BROKER_URL", "TOUCHSTONE_HOME", "TOUCHSTONE_REWARDS_URL")
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments, "--home", str(home)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_up_serves_and_a_killed_supervisor_leaves_nothing_behind(home: Path) -> None:
    with _up(home) as up:
        assert up.get("/healthz").text == "ok"
        proxied, direct = (
            up.get("/api/v1/rewards/nothing/"),
            httpx.get(f"http://127.0.0.1:{up.rewards_port}/api/v1/rewards/nothing/", trust_env=False),
        )
        assert (proxied.status_code, proxied.content) == (direct.status_code, direct.content)
        assert proxied.status_code == 401
        assert up.get("/static/css/touchstone.css").headers["content-type"].startswith("text/css")

        second = _manage(home, "up", f"--port={_free_port()}", f"--rewards-port={_free_port()}")
        said, _ = second.communicate(timeout=120)
        assert second.returncode == 1
        assert re.search(rf"Error: Touchstone is already running on .*process {up.popen.pid}", said)

        examined, _ = _manage(home, "doctor").communicate(timeout=120)
        assert "FAIL" not in examined
        (home / "items.jsonl").write_text('{"text": "hello"}\n')
        scored, _ = _manage(home, "score", "nothing", str(home / "items.jsonl")).communicate(timeout=120)
        assert "There is no endpoint" in scored  # it found the service on its port, though nobody told it

        names = {line.split("|")[0].strip() for line in up.lines if "|" in line}
        assert {"web", "rewards", "default", "gpu", "beat", "migrate"} <= names

        up.popen.kill()
        assert up.wait() == -signal.SIGKILL


def test_ctrl_c_stops_everything(home: Path) -> None:
    with _up(home) as up:
        assert (home / "rewards-address").read_text() == f"http://127.0.0.1:{up.rewards_port}"
        up.popen.send_signal(signal.SIGINT)
        assert up.wait() == 0
        assert not (home / "rewards-address").exists()


def test_when_one_process_dies_all_stop_and_it_is_named(home: Path) -> None:
    with _up(home) as up:
        up.named("beat").kill()
        assert up.wait() == 1
        assert any(line.startswith("Error: beat was killed by SIGKILL") for line in up.lines)


def test_a_taken_port_is_refused_in_words(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = _manage(home, "up", f"--port={port}", f"--rewards-port={_free_port()}")
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"Error: 127.0.0.1:{port} is taken" in said
    assert "choose another with --port" in said
