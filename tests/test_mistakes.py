"""A newcomer's mistakes, each answered in words. Taken ports and damaged backups are with what they belong to."""

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from apps.core.database import migration_state
from apps.core.errors import DomainError
from tests.core.homes import open_home, small_disk
from tests.migrated import fill_home
from tests.ports import free_port

ROOT = Path(__file__).parents[1]


def _manage(home: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    with _start(home, *command) as process:
        out, err = process.communicate(timeout=900)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _start(home: Path, *command: str) -> "subprocess.Popen[str]":
    names = ("DATABASE_URL", "CELERY_BROKER_URL", "TOUCHSTONE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.Popen(
        [sys.executable, "manage.py", *command, "--home", str(home)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["up", pytest.param("demo", marks=pytest.mark.long)])
def test_a_full_disk(command: str) -> None:
    with small_disk("size=16k") as home:
        done = _manage(home, command)
    assert done.returncode == 1
    assert (
        f"Error: The disk of {home} is full. Free some space there, or use another home (--home DIR)."
        in done.stderr
    )


def test_a_disk_that_is_full_before_the_database_is_made() -> None:
    with small_disk("size=12m") as home:
        done = _manage(home, "up")
    assert done.returncode == 1
    assert (
        "PostgreSQL could not create a database" in done.stderr and "No space left on device" in done.stderr
    )


def test_a_home_that_is_read_only() -> None:
    with small_disk("ro") as home:
        done = _manage(home, "up")
    assert done.returncode == 1
    assert (
        f"Error: {home} cannot be written by" in done.stderr
        and "use another home (--home DIR)" in done.stderr
    )


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    done = _manage(tmp_path / "home", "up")
    assert done.returncode == 1 and f"Error: {tmp_path / 'home'} cannot be used" in done.stderr


def test_two_demos_on_one_home() -> None:
    with open_home() as home, (home / "up.lock").open("w") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = _manage(home, "demo", "--exit")
    assert done.returncode == 1
    assert (
        f"Error: Touchstone is already running on {home} (process 4711). Stop it, or give this one another home"
        in done.stderr
    )


@pytest.mark.long
def test_a_killed_demo_goes_on_where_it_was() -> None:
    with open_home() as home:
        fill_home(home)
        command = ("demo", "--exit", f"--port={free_port()}", f"--rewards-port={free_port()}")
        killed = _start(home, *command)
        with killed:
            assert killed.stdout is not None
            for line in killed.stdout:
                if line.startswith("Training"):
                    break
            killed.kill()
        done = _manage(home, *command)
    assert done.returncode == 0, done.stderr
    assert "300 trajectories" in done.stdout and "(0 new)" in done.stdout
    assert "The whole loop took" in done.stdout


def test_a_command_before_anything_was_started(tmp_path: Path) -> None:
    done = _manage(tmp_path, "create_project", "desk")
    assert done.returncode == 1
    assert (
        f"Error: There is no database in {tmp_path} yet. Start one with `python manage.py up`" in done.stderr
    )


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """A Python that says it is 3.10."""
    path = tmp_path / "python3.10"
    pretend = (
        'import sys; sys.version_info = (3, 10, 0); sys.executable = "/usr/bin/python3.10"; exec(sys.argv[1])'
    )
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{pretend}' \"$2\"\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def test_the_wrong_python_for_make(other_python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "install", f"PYTHON={other_python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Touchstone needs Python 3.11 to 3.13; /usr/bin/python3.10 is 3.10." in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("sys.version_info = (3, 10, 2)", "Touchstone needs Python 3.11 to 3.13; "),
        ("sys.modules['django.core.management'] = None", "Touchstone is not installed for "),
    ],
)
def test_the_wrong_python_for_a_command(before: str, says: str) -> None:
    script = f"import sys; {before}; sys.argv = ['manage.py', 'up']; import manage; manage.main()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.startswith(says), done.stderr


@pytest.mark.django_db
class TestVersions:
    def _applied(
        self,
        monkeypatch: pytest.MonkeyPatch,
        more: Mapping[tuple[str, str], None] | None = None,
        without: tuple[str, str] | None = None,
    ) -> None:
        """The application's role may not write the table of migrations."""
        found: dict[Any, Any] = dict(MigrationRecorder(connection).applied_migrations()) | dict(more or {})
        found.pop(without, None)
        monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda _: found)

    def test_a_home_made_by_a_newer_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._applied(monkeypatch, {("annotation", "0099_from_the_future"): None})
        with pytest.raises(
            CommandError, match=r"created by a newer version of Touchstone: it has annotation\.0099"
        ):
            call_command("create_project", "desk")
        with pytest.raises(DomainError, match="Start that version again, or restore a backup of this one"):
            migration_state.require_known_migrations()
        assert not migration_state.database_is_ready()

    def test_migrations_that_are_pending(self, monkeypatch: pytest.MonkeyPatch) -> None:
        [newest] = MigrationLoader(connection).graph.leaf_nodes("rewards")
        self._applied(monkeypatch, without=newest)
        with pytest.raises(
            CommandError,
            match=rf"1 migrations are not applied, the first: rewards\.{newest[1]}\. Run",
        ):
            call_command("create_project", "desk")
