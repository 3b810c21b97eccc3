"""Every test is in a group, and the groups that start at once import no torch to begin."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import groups

ROOT = Path(__file__).parents[1]
PLANTED = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"


def collected(*options: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    environment["PYTHONPATH"] = str(path or "")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)


def test_every_folder_is_in_a_group() -> None:
    found = {path.parent for path in groups.TESTS.rglob("test_*.py")}
    assert {groups.folder_of(folder / "test_it.py") for folder in found} <= set(groups.FOLDERS)
    assert set(groups.FOLDERS.values()) <= set(groups.GROUPS)
    assert all((groups.TESTS / name).is_file() for name in (*groups.LONGEST, *groups.TOGETHER))


def test_marks_come_before_folders() -> None:
    assert groups.groups_in(groups.TESTS / "faults/test_random.py") == {"long"}
    assert groups.groups_in(groups.TESTS / "core/test_brokers.py") == {"web", "slow"}
    assert groups.groups_in(groups.TESTS / "core/test_private.py") == {"web", "long"}


def test_what_starts_at_once_imports_no_torch() -> None:
    done = collected("--group", "unit,web")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "tests/annotation" in done.stdout and "tests/workers" not in done.stdout


@pytest.mark.parametrize(("group", "code"), [("unit", 4), ("ml", 5)])
def test_torch_is_noticed(group: str, code: int, tmp_path: Path) -> None:
    """As if a file of tests/contracts imported it; and it is no fault where torch is wanted."""
    (tmp_path / "planted.py").write_text(PLANTED)
    done = collected("-p", "planted", "--group", group, "tests/contracts", path=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("imports torch when pytest reads it" in done.stderr) == (group == "unit")


def test_a_group_that_is_none_is_refused() -> None:
    done = collected("--group", "units", "tests/contracts")
    assert done.returncode == 4
    assert "there is no units, only unit, web, ml, browser, slow, long" in done.stderr
