"""What cannot be restored is refused in words, and leaves the home as empty as it was.

That a real one comes back whole is shown where there is something to lose: tests/faults.
"""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core import archive, backup
from tests.core.homes import open_home
from tests.faults.stack import ROOT, Stack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A home nothing has run on."""
    with open_home() as home:
        stack = Stack(home)
        yield stack
        stack.destroy()


def _restore(stack: Stack, file: Path) -> str:
    command = [sys.executable, "manage.py", "restore", str(file)]
    done = subprocess.run(
        command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def made(db: None, tmp_path: Path) -> Callable[..., Path]:
    """make(**head): the backup of this version's empty database, but for what its head says."""

    def make(**head: Any) -> Path:
        with archive.writing(tmp_path / "made") as out:
            out.add_json(archive.HEAD, backup._head() | head)
            out.add("artifacts/a", io.BytesIO(b"x" * 100_000), 100_000)
            out.finish()
        return tmp_path / "made"

    return make


def test_one_of_a_newer_version(stack: Stack, made: Callable[..., Path]) -> None:
    said = _restore(stack, made(migrations=[["annotation", "0099_from_the_future"]], touchstone="9.9"))
    assert "was made by a newer Touchstone (9.9" in said and "annotation.0099_from_the_future" in said
    assert "Restore it with that version or a later one" in said


def test_one_that_was_cut(stack: Stack, made: Callable[..., Path]) -> None:
    file = made()
    file.write_bytes(file.read_bytes()[:-100])
    assert "cannot be restored" in _restore(stack, file)


def test_something_else(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("dear diary")
    assert "no backup of Touchstone" in _restore(stack, tmp_path / "notes")


def test_after_all_that_a_good_one_still_fits(stack: Stack, made: Callable[..., Path]) -> None:
    assert stack.call("restore", str(made()))["artifacts"] == 1
