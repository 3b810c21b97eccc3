"""`--workers N`: the collected tests, run by forks of the process that collected them.

A worker of pytest-xdist is a process that collects all tests again: 32 s of CPU each, 52 s where no bytecode is
cached. A fork has them, and torch, at once. A worker runs file after file, so that what the tests of a file share is
made once; when no file is left, it takes the second half of what the busiest worker still has to run.
"""

import os
import signal
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest
import pytest_rerunfailures
from _pytest.capture import FDCapture

from apps.core.processes.parent_death import die_with
from tests import groups

_AHEAD = (
    2  # tests a worker knows: the one it runs, and the next, which says what of the first is still needed
)


@dataclass
class Unit:
    """Tests for one worker, in order, as positions in `session.items`."""

    tests: deque[int]
    can_be_divided: bool = True


def units_of(paths: Sequence[str]) -> Iterator[Unit]:
    """paths: of each test its file, below tests. Neighbours of one file are a unit."""
    for unit, positions in groupby(range(len(paths)), lambda position: groups.unit_of(paths[position])):
        yield Unit(deque(positions), can_be_divided=not groups.stays_together(unit))


@dataclass
class Worker:
    number: int
    pid: int
    connection: Connection
    unit: Unit
    given: deque[int] = field(default_factory=deque)  # sent and not reported as finished
    is_told_to_end: bool = False


class Controller:
    """Gives tests to workers, and reports to pytest what they report. A worker that dies fails its test."""

    def __init__(self, session: pytest.Session, count: int, prepare: Callable[[int], None]) -> None:
        self.session, self.prepare = session, prepare
        paths = [os.path.relpath(item.path, groups.TESTS) for item in session.items]
        self.units = deque(units_of(paths))
        self.workers: list[Worker] = []
        self.count = count

    def run(self) -> None:
        try:
            for number in range(min(self.count, len(self.session.items))):
                self._start(number, Unit(deque()))
            while self.workers:
                ready = wait([worker.connection for worker in self.workers])
                for worker in [each for each in self.workers if each.connection in ready]:
                    self._hear(worker)
                    if self.session.shouldfail:
                        raise self.session.Failed(self.session.shouldfail)
                    if self.session.shouldstop:
                        raise self.session.Interrupted(self.session.shouldstop)
        finally:
            for worker in self.workers:
                os.kill(worker.pid, signal.SIGTERM)
                os.waitpid(worker.pid, 0)

    def _start(self, number: int, unit: Unit) -> None:
        ours, theirs = Pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            for other in [ours, *(worker.connection for worker in self.workers)]:
                other.close()
            _be_worker(self.session, number, theirs, self.prepare, parent)
        theirs.close()
        worker = Worker(number, pid, ours, unit)
        self.workers.append(worker)
        self._give(worker)

    def _give(self, worker: Worker) -> None:
        while len(worker.given) < _AHEAD and not worker.is_told_to_end:
            if not worker.unit.tests:
                worker.unit = self._next_unit()
            if worker.unit.tests:
                worker.given.append(worker.unit.tests.popleft())
                worker.connection.send(worker.given[-1])
            else:
                worker.connection.send(None)
                worker.is_told_to_end = True

    def _next_unit(self) -> Unit:
        """A file, or half of what another worker has of one; without tests where nothing is left."""
        if self.units:
            return self.units.popleft()
        divisible = [worker.unit.tests for worker in self.workers if worker.unit.can_be_divided]
        most = max(divisible, key=len, default=deque[int]())
        kept = len(most) // 2
        taken = deque(list(most)[kept:])
        for _ in taken:
            most.pop()
        return Unit(taken)

    def _hear(self, worker: Worker) -> None:
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionError):
            self._gone(worker)
            return
        hook = self.session.config.hook
        if kind == "start":
            hook.pytest_runtest_logstart(**content)
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self.session.config, data=content)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "finish":
            hook.pytest_runtest_logfinish(**content)
        elif kind == "done":
            worker.given.popleft()
            self._give(worker)
        else:
            raise RuntimeError(f"A worker failed:\n{content}")

    def _gone(self, worker: Worker) -> None:
        _, status = os.waitpid(worker.pid, 0)
        self.workers.remove(worker)
        if not worker.given:
            return
        item = self.session.items[worker.given.popleft()]
        said = f"Worker {worker.number} ended in this test, with status {os.waitstatus_to_exitcode(status)}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        item.ihook.pytest_runtest_logreport(report=report)
        worker.unit.tests.extendleft(reversed(worker.given))
        self._start(worker.number, worker.unit)


class _Reporter:
    """In a worker: what pytest says of a test, to the controller."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self.config, self.connection = config, connection

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.connection.send(("start", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.connection.send(("finish", {"nodeid": nodeid, "location": location}))


def _be_worker(
    session: pytest.Session,
    number: int,
    connection: Connection,
    prepare: Callable[[int], None],
    parent: int,
) -> NoReturn:
    status = 1
    try:
        die_with(parent)
        config: Any = session.config
        config.workerinput = {
            "workerid": f"gw{number}"
        }  # which pytest-django and pytest's own plugins look at
        # Else it keeps first failures to itself in what looks like a worker of an old pytest-xdist.
        pytest_rerunfailures.works_with_current_xdist = lambda: True
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_Reporter(config, connection))
        _capture_apart(config)
        base = config._tmp_path_factory.getbasetemp() / f"worker-{number}-{os.getpid()}"
        config._tmp_path_factory._given_basetemp, config._tmp_path_factory._basetemp = base, None
        prepare(number)
        _run_tests(session, connection)
        status = 0
    except KeyboardInterrupt:
        status = 2
    except BaseException:
        connection.send(("error", traceback.format_exc()))
    finally:
        try:
            from tests.forked import keep_coverage

            keep_coverage()
        finally:
            os._exit(status)


def _capture_apart(config: pytest.Config) -> None:
    """Forks write at one place of a shared file: each gets files of its own for what its tests print."""
    capturing = config.pluginmanager.getplugin("capturemanager")._global_capturing  # type: ignore[union-attr]
    for stream in (capturing.out, capturing.err) if capturing else ():
        if isinstance(stream, FDCapture):
            with tempfile.TemporaryFile(buffering=0) as file:
                os.dup2(file.fileno(), stream.tmpfile.fileno(), inheritable=False)


def _run_tests(session: pytest.Session, connection: Connection) -> None:
    position = connection.recv()
    while position is not None:
        following = connection.recv()
        item = session.items[position]
        later = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=later)
        connection.send(("done", None))
        position = following
