"""Children of the core as forks of the process that tests: what they import is imported already.

A child took 4 to 8 s to import torch, and some files of tests start dozens. A fork runs the same `__main__` with the
same arguments, environment, output and exit status. What is about a process of its own (its command line, what is left
of it when it is killed) is tested with real ones, as is each kind of child once: `@pytest.mark.real_children`.
"""

import gc
import importlib.util
import logging
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.processes import core_subprocess
from apps.core.processes.parent_death import dies_with_parent


class Forked(subprocess.Popen[bytes]):
    """A child that is there already, to poll, to wait for and to kill like any other."""

    def __init__(self, pid: int, command: list[str]) -> None:
        self.pid, self.args, self.returncode = pid, command, None
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._sigint_wait_secs = True, 0.25
        self._waitpid_lock = threading.Lock()


def start(
    module: str,
    arguments: list[str],
    *,
    log: Path,
    given: Mapping[str, str] | None = None,
    with_pipes: bool = False,
) -> subprocess.Popen[bytes]:
    """`core_subprocess.start`, forked."""
    import_child(module)
    environment = core_subprocess.environment() | dict(given or {})
    prepare = dies_with_parent()
    sys.stdout.flush()
    sys.stderr.flush()
    into, out = (os.pipe(), os.pipe()) if with_pipes else (None, None)
    pid = os.fork()
    if pid:
        child = Forked(pid, [sys.executable, "-m", module, *arguments])
        if into and out:
            os.close(into[0])
            os.close(out[1])
            child.stdin, child.stdout = os.fdopen(into[1], "wb"), os.fdopen(out[0], "rb")
        return child
    status = 1
    try:
        os.setsid()
        prepare()
        _become(environment, log, (into[0], out[1]) if into and out else None)
        status = _run(module, arguments)
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            keep_coverage()
        except Exception:  # reported, and still the child never returns into the test
            traceback.print_exc()
            status = status or 1
        finally:
            os._exit(status)


def run_code(command: list[str], *, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of `python -c CODE ARGUMENTS` that captures what is said, forked; without our own packages,
    which the code has to do without. Raises CalledProcessError where `check` is given."""
    _, flag, code, *arguments = command
    assert flag == "-c", command
    with tempfile.TemporaryDirectory() as folder:
        said, log = Path(folder, "out"), Path(folder, "log")
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                _become(core_subprocess.environment(), log)
                os.chdir(cwd)
                os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 1)
                status = _run_code(code, arguments)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        done = subprocess.CompletedProcess(command, status, said.read_text(), log.read_text())
    if options.get("check"):
        done.check_returncode()
    return done


def _run_code(code: str, arguments: list[str]) -> int:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("apps", "workers", "tests")]:
        del sys.modules[name]
    sys.argv = ["-c", *arguments]
    try:
        exec(code, {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@cache
def import_child(module: str) -> None:
    """What the child imports first, which makes every later one quick."""
    found = importlib.util.find_spec(module)
    if found is not None and found.submodule_search_locations:
        importlib.import_module(f"{module}.__main__")
        del sys.modules[f"{module}.__main__"]  # run again by each child


def _become(environment: dict[str, str], log: Path, pipes: tuple[int, int] | None = None) -> None:
    os.chdir(settings.BASE_DIR)
    out, nothing = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), os.open(os.devnull, os.O_RDWR)
    reading, writing = pipes or (nothing, out)
    for descriptor, place in ((reading, 0), (writing, 1), (out, 2)):
        os.dup2(descriptor, place)
    gc.freeze()  # a socket of the test that is collected here would close the descriptor of another file
    let_go_of_descriptors(nothing)
    forget_log_handlers()
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", buffering=1, closefd=False) for place in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    warnings.resetwarnings()  # a warning is no error there


def let_go_of_descriptors(nothing: int, kept: Collection[int] = ()) -> None:
    """Of connections, locks and the servers of the test. Each number stays taken: log handlers and sockets of the test
    still know it, and would write into, or close, the file that the child opens under it."""
    for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if descriptor > 2 and descriptor != nothing and descriptor not in kept:
            os.dup2(nothing, descriptor, inheritable=False)


def forget_log_handlers() -> None:
    """A process of its own configures no logging: warnings go to standard error."""
    logging.getLogger().handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)


def _run(module: str, arguments: list[str]) -> int:
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def keep_coverage() -> None:
    """What was run here counts too, where it is measured: `os._exit` would forget it."""
    coverage = sys.modules.get("coverage")
    measured = coverage.Coverage.current() if coverage else None
    if measured is not None:
        measured.stop()
        measured.save()
