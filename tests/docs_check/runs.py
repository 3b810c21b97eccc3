"""Runs blocks of the documentation, page by page, against an installation made for it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.docs_check.forked_installation import ForkedInstallation
from tests.docs_check.marked_blocks import MarkedBlock
from tests.docs_check.pages import FIRST, PROJECTS, WORDS
from tests.faults.stack import Stack, until
from tests.snippets import ROOT

HERE = Path(__file__).parent
SCOPES = "ingest,feedback:read,feedback:write,train,reward,admin"
_LIMIT = 570.0
_INTERPRETERS = {
    "m": 'exec "$PY" manage.py "$@"',
    "manage.py": 'exec "$PY" manage.py "$@"',
    "python": 'exec "$PY" "$@"',
    "python3": 'exec "$PY" "$@"',
    "touchstone": 'exec "$PY" -m touchstone_client.cli.main "$@"',
    "python_blocks": 'exec "$PY" "$HERE/python_blocks.py"',
}
_SHIMS = {
    # Installs for real, but only what the block names, next to this environment instead of into it.
    "pip": 'exec "$PY" -m pip "$@" --quiet --no-deps --no-build-isolation --no-index --target "$WORK/installed"',
}


@dataclass
class Outcome:
    block: MarkedBlock
    error: str  # empty: it ran
    seconds: float


@dataclass
class Checked:
    """The installation on `home`, the folder `work` that blocks run in, and what was run."""

    home: Path
    work: Path
    stack: Stack | ForkedInstallation
    keys: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    _started: bool = False
    _python: "subprocess.Popen[str] | None" = None
    _page: str = ""
    _has_support: bool = False

    @classmethod
    def make(cls, home: Path, work: Path, forked: ForkedInstallation | None = None) -> "Checked":
        """forked: it runs the blocks there, and else on a new installation with `manage.py up`."""
        work.mkdir(exist_ok=True)
        for path in ROOT.iterdir():
            if path.name not in (".git", "out", "var"):
                (work / path.name).symlink_to(path)
        shims = work / "shims"
        shims.mkdir()
        programs = forked.shims if forked else _INTERPRETERS
        for name, line in (programs | _SHIMS).items():
            (shims / name).write_text(f"#!/bin/sh\n{line}\n")
            (shims / name).chmod(0o755)
        stack = forked or Stack(home, {"MLFLOW_TRACKING_URI": f"sqlite:///{work}/mlflow.db"})
        return cls(home, work, stack)

    def run(self, block: MarkedBlock) -> Outcome:
        began = time.monotonic()
        page = block.snippet.page
        if not is_demo(block) and not self._started:
            self._start()
        if page != self._page and not is_demo(block):
            error = self._turn_to(page)
            if error:
                return self._record(block, f"what comes before the page failed: {error}", began)
        code = self._with_values(page, block.snippet.code)
        return self._record(
            block, self._ran_python(code) if block.is_python else self._ran_shell(page, code), began
        )

    def stop(self) -> None:
        self._end_python()
        if self._started:
            self.stack.stop()
        self.stack.destroy()

    def _record(self, block: MarkedBlock, error: str, began: float) -> Outcome:
        self._has_support = self._has_support or "create_project support" in block.snippet.code
        outcome = Outcome(block, error, time.monotonic() - began)
        self.outcomes.append(outcome)
        return outcome

    def _start(self) -> None:
        """With the project `sample` that `make demo` left, and the projects that pages speak of."""
        self.stack.start()
        self._started = True
        (self.home / "rewards-address").write_text(self.stack.rewards_url)
        for project in sorted(set(PROJECTS.values()) - {"sample"}):
            self.stack.call("create_project", project)
        self._require(self._bash((HERE / "before" / "first.sh").read_text(), {}))
        headers = {"Authorization": f"Bearer {self._key('sample')}"}
        body = {"inputs": [{"text": "Yes."}]}
        address = f"{self.stack.url}/api/v1/rewards/sample/score"
        until(
            lambda: (
                httpx.post(address, json=body, headers=headers, trust_env=False, timeout=60).status_code
                == 200
            ),
            60,
            "the endpoint of the sample project does not answer",
        )

    def _turn_to(self, page: str) -> str:
        """The error of what comes before the page, or nothing."""
        self._page = page
        self._end_python()
        before = _before(page, "sh")
        return self._ran_shell(page, before.read_text()) if before.is_file() else ""

    def _environment(self, page: str) -> dict[str, str]:
        key = self._key_of(page)
        return {
            **self.stack.environment,
            "PATH": f"{self.work / 'shims'}:{os.environ['PATH']}",
            "PY": sys.executable,
            "WORK": str(self.work),
            "HERE": str(HERE),
            "PYTHONPATH": str(ROOT),
            "URL": self.stack.url,
            "KEY": key,
            "TOUCHSTONE_KEY": key,
            "TOUCHSTONE_PUBLIC_URL": self.stack.url,
            "TOUCHSTONE_REWARDS_ADDRESS": self.stack.rewards_url,
            "XDG_CONFIG_HOME": str(self.work / "config"),
            "HF_HUB_OFFLINE": "1",
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.work}/mlflow.db",
        }

    def _key_of(self, page: str) -> str:
        """Empty before the tutorial has created its project."""
        project = PROJECTS.get(page, "support")
        return self._key(project) if self._started and (project != "support" or self._has_support) else ""

    def _key(self, project: str) -> str:
        if project not in self.keys:
            told = self.stack.call("create_api_key", project, "--scopes", SCOPES)
            self.keys[project] = told["key"]
        return self.keys[project]

    def _with_values(self, page: str, code: str) -> str:
        """The block, with our address and a key of the page's project where the page has examples."""
        key = self._key_of(page)
        ports = f"--port {self.stack.port} --rewards-port {self.stack.rewards_port}"
        for written, meant in (*WORDS.get(page, {}).items(), *WORDS[""].items()):
            code = code.replace(written, meant.format(key=key, url=self.stack.url, ports=ports))
        return code

    def _bash(self, code: str, more: dict[str, str], page: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.work,
            env=self._environment(page) | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT,
        )

    def _ran_shell(self, page: str, code: str) -> str:
        """The error, or nothing. An answer of ours that is a problem fails too: curl ends with 0 after one."""
        try:
            done = self._bash(code, {}, page)
        except subprocess.TimeoutExpired:
            return f"took over {_LIMIT:.0f} s"
        if done.returncode:
            return f"status {done.returncode}: {done.stderr[-1500:]}{done.stdout[-500:]}"
        with contextlib.suppress(ValueError):
            answer = json.loads(done.stdout)
            if isinstance(answer, dict) and ("detail" in answer and "status" in answer):
                return done.stdout
        return ""

    @staticmethod
    def _require(done: "subprocess.CompletedProcess[str]") -> None:
        if done.returncode:
            raise AssertionError(f"first.sh failed: {done.stderr[-2000:]}{done.stdout[-1000:]}")

    def _ran_python(self, code: str) -> str:
        """Blocks of a page share their names, in one process for each page; after one that ended it, in the next."""
        error = "" if self._python is not None else self._start_python()
        return error or self._answer_of_python(code)

    def _start_python(self) -> str:
        """With the names that the page's blocks take for granted."""
        self._python = subprocess.Popen(
            ["python_blocks"],
            executable=str(self.work / "shims/python_blocks"),
            cwd=self.work,
            env=self._environment(self._page),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        before = _before(self._page, "py")
        return self._answer_of_python(before.read_text()) if before.is_file() else ""

    def _answer_of_python(self, code: str) -> str:
        assert self._python is not None and self._python.stdin and self._python.stdout
        try:
            self._python.stdin.write(json.dumps({"code": code, "limit": _LIMIT}) + "\n")
            self._python.stdin.flush()
            answer = self._python.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._end_python()
            return "the interpreter ended, or it took too long"
        return str(json.loads(answer)["error"])

    def _end_python(self) -> None:
        if self._python is not None:
            self._python.kill()
            self._python.wait()
            for pipe in (self._python.stdin, self._python.stdout):
                if pipe is not None:
                    pipe.close()
            self._python = None


def _before(page: str, ending: str) -> Path:
    return HERE / "before" / f"{page.removesuffix('.md').replace('/', '-')}.{ending}"


@contextlib.contextmanager
def checked(home: Path, work: Path, forked: ForkedInstallation | None = None) -> Iterator[Checked]:
    made = Checked.make(home, work, forked)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(work)


def is_demo(block: MarkedBlock) -> bool:
    """What leaves the sample project, and ends: everything else runs on the installation that it made."""
    return block.snippet.page == "README.md" and block.snippet.code.startswith("make demo")


def in_order(blocks: list[MarkedBlock]) -> list[MarkedBlock]:
    """README makes the sample project and the tutorial the project `support`; other pages follow."""

    def place(block: MarkedBlock) -> int:
        return FIRST.index(block.snippet.page) if block.snippet.page in FIRST else len(FIRST)

    return sorted(blocks, key=place)
