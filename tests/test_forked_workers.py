"""Tests run by forks end as they would in one process; a fork that dies takes one test with it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.forked_workers import units_of

ROOT = Path(__file__).parents[1]

CONFTEST = """
import pytest
from tests.forked_workers import Controller

def pytest_runtestloop(session):
    Controller(session, 2, lambda number: None).run()
    return True

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    path = tmp_path_factory.mktemp("shared") / "made"
    path.write_text("once")
    yield path
    path.unlink()
"""
TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(6))
def test_passes(number, shared, tmp_path):
    assert shared.read_text() == "once" and list(tmp_path.iterdir()) == []

def test_fails():
    print("printed before it failed")
    os.write(1, b"written before it failed")
    assert 1 == 2

def test_dies():
    os._exit(7)

@pytest.mark.flaky(reruns=1)
def test_passes_the_second_time(request):
    assert request.node.execution_count == 2

@pytest.mark.flaky(reruns=1)
def test_fails_both_times():
    assert 3 == 4

@pytest.mark.skip(reason="to see a skipped test reported")
def test_is_skipped():
    pass

def test_after_the_one_that_died():
    pass
"""


def run(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    for name in ("one", "two"):
        (folder / f"test_{name}.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_outcomes_and_output_are_those_of_one_process(tmp_path: Path) -> None:
    said = run(tmp_path, "-rsR", "--rerun-show-tracebacks")
    assert re.search(r"6 failed, 16 passed, 2 skipped, 4 rerun in", said)
    assert said.count("printed before it failed\nwritten before it failed") == 2
    assert len(re.findall(r"Worker [01] ended in this test, with status 7\.", said)) == 2
    assert "to see a skipped test reported" in said
    assert "RERUN test_one.py::test_passes_the_second_time\n" in said and "assert 1 == 2" in said


def test_it_stops_where_it_was_asked_to(tmp_path: Path) -> None:
    assert "stopping after 1 failures" in run(tmp_path, "--exitfirst", "--deselect=test_one.py::test_dies")


def test_neighbours_of_one_file_are_a_unit() -> None:
    paths = ["a.py", "a.py", "b.py", "faults/c.py", "client/test_trl.py", "rewards/wire/test_trl_tools.py"]
    units = list(units_of(paths))
    assert [list(unit.tests) for unit in units] == [[0, 1], [2], [3], [4, 5]]
    assert [unit.can_be_divided for unit in units] == [True, True, False, True]
