"""The home and what lies in it is its owner's alone: what is made, and what was left open before."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from apps.core import health
from apps.core.errors import DomainError
from apps.core.storage import private_files
from tests.core.homes import open_home
from tests.faults.stack import ROOT, Stack
from tests.migrated import fill_home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """As an earlier version left one."""
    home = tmp_path / "home"
    (home / "artifacts" / "deep").mkdir(parents=True)
    (home / "artifacts" / "deep" / "weights").write_text("of somebody")
    (home / "logs").mkdir()
    (home / "logs" / "web.log").write_text("a line")
    (home / "secret_key").write_text("key")
    (home / "run").write_text("#!/bin/sh")
    for path in [home, *home.rglob("*")]:
        path.chmod(0o775 if path.is_dir() or path.name == "run" else 0o664)
    return home


def test_a_home_that_was_open_is_closed_at_a_start(home: Path) -> None:
    assert private_files.close_home(home) == 5  # the home, and what lies in it
    assert mode(home) == mode(home / "artifacts") == 0o700 and mode(home / "secret_key") == 0o600
    assert mode(home / "run") == 0o700, "what its owner may do stays"
    assert private_files.close_home(home) == 0


def test_up_closes_it_to_the_last_file_once(home: Path) -> None:
    private_files.close_home(home, wholly=True)
    assert private_files.open_paths(home, 100) == []
    assert mode(home / "artifacts" / "deep" / "weights") == 0o600


def test_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs").write_text("not ours")
    outside.chmod(0o755)
    (outside / "theirs").chmod(0o644)
    (home / "artifacts" / "link").symlink_to(outside)
    private_files.close_home(home, wholly=True)
    assert mode(outside) == 0o755 and mode(outside / "theirs") == 0o644
    assert private_files.open_paths(home, 100) == []


def test_a_folder_of_everybody_is_left_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert private_files.close_home(shared, wholly=True) == 0 and mode(shared) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL as another user")
def test_the_user_of_postgresql_may_pass_through_and_keeps_what_is_theirs(home: Path) -> None:
    data = home / "postgres"
    data.mkdir(mode=0o700)
    os.chown(data, 65534, 65534)
    private_files.close_home(home, wholly=True)
    assert mode(home) == 0o711 and mode(home / "logs") == 0o700 and data.stat().st_uid == 65534
    assert private_files.open_paths(home, 100) == []


def test_doctor_names_what_is_open(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "HOME", home)
    with pytest.raises(DomainError, match=r"may read or change .*home \(0775\), .*and \d more"):
        health.home_permissions()
    private_files.close_home(home, wholly=True)
    assert health.home_permissions() == "the home is its owner's alone"
    (home / "artifacts" / "deep").chmod(0o750)
    with pytest.raises(DomainError, match=r"artifacts/deep \(0750\)"):
        health.home_permissions()


def test_stored_files_are_private_whatever_the_umask() -> None:
    before = os.umask(0o022)
    try:
        name = storages["artifacts"].save("test-private/deep/one", ContentFile(b"x"))
    finally:
        os.umask(before)
    path = Path(storages["artifacts"].path(name))
    assert mode(path) == 0o600 and mode(path.parent) == mode(path.parent.parent) == 0o700


def test_every_process_begins_private(tmp_path: Path) -> None:
    """By manage.py, which starts all of them."""
    code = "import os, subprocess; open('made', 'w').close(); os.mkdir('folder'); subprocess.run(['touch', 'childs'])"
    command = [
        sys.executable,
        str(ROOT / "manage.py"),
        "shell",
        "--no-imports",
        "-c",
        f"import os; os.chdir({str(tmp_path)!r}); {code}",
    ]
    environment = {
        **os.environ,
        "TOUCHSTONE_HOME": str(tmp_path / "home"),
        "DJANGO_SETTINGS_MODULE": "apps.config.settings",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, umask=0o002)
    assert done.returncode == 0, done.stderr
    assert [mode(tmp_path / name) for name in ("made", "folder", "childs")] == [0o600, 0o700, 0o600]


@pytest.fixture
def stack() -> Iterator[Stack]:
    with open_home() as home:
        fill_home(home)
        home.chmod(0o755)
        (home / "logs").chmod(0o755)
        (home / "logs" / "web.log").write_text("of an earlier version")
        stack = Stack(home)
        stack.output = home.with_name(f"{home.name}.log")  # this test's own, not of the home
        try:
            yield stack
        finally:
            stack.destroy()
            stack.output.unlink(missing_ok=True)


@pytest.mark.long
def test_after_work_nothing_in_a_home_is_anybodys_but_its_owners(stack: Stack, tmp_path: Path) -> None:
    stack.start()
    stack.call("create_project", "alpha")
    line = {"prompt": "Where is it?", "response": "On its way.", "task": "t1"}
    (tmp_path / "runs.jsonl").write_text(json.dumps(line) + "\n")
    assert stack.call("import_trajectories", "alpha", str(tmp_path / "runs.jsonl"))["created"] == 1
    stack.call("backup", str(stack.home / "all.backup"))
    assert private_files.open_paths(stack.home, 100_000) == []
    assert mode(stack.home) in (0o700, 0o711) and mode(stack.home / "all.backup") == 0o600
