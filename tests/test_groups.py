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
    assert all(
        (groups.TESTS / name).is_file() for name in (*groups.LONGEST, *groups.TOGETHER, *groups.READ_CODE)
    )


def test_marks_come_before_folders() -> None:
    assert groups.groups_in(groups.TESTS / "faults/test_random.py") == {"long"}
    assert groups.groups_in(groups.TESTS / "core/test_brokers.py") == {"web", "slow"}
    assert groups.groups_in(groups.TESTS / "core/test_private.py") == {"web", "long"}


def test_what_waits_for_other_processes_has_a_second_run(request: pytest.FixtureRequest) -> None:
    marks = {item.path.name: item.get_closest_marker("flaky") for item in request.session.items}
    assert marks[Path(__file__).name] is None
    assert groups.TIMED.issubset(groups.GROUPS)


@pytest.mark.slow
def test_what_starts_at_once_imports_no_torch() -> None:
    done = collected("--group", "unit,web")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "tests/annotation" in done.stdout and "tests/workers" not in done.stdout


@pytest.mark.slow
def test_torch_is_refused(tmp_path: Path) -> None:
    """As if a file of tests/contracts imported it."""
    (tmp_path / "planted.py").write_text(PLANTED)
    done = collected("-p", "planted", "--group", "unit", "tests/contracts", path=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "imports torch when pytest reads it" in done.stderr


@pytest.mark.parametrize("chosen", [{"ml"}, {"unit", "ml"}, {"browser"}, set[str]()])
def test_torch_is_no_fault_where_it_is_wanted(chosen: set[str]) -> None:
    assert groups.imports_torch_too_soon(chosen, {"torch"}) == ""
    assert groups.imports_torch_too_soon({"unit", "web"}, {"torch"})


def test_a_group_that_is_none_is_refused() -> None:
    assert groups.parse_groups("unit,,web") == {"unit", "web"}
    with pytest.raises(ValueError, match="there is no units, only unit, web, ml, browser, slow, long"):
        groups.parse_groups("units")
