import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import env_bool, env_int, env_list, env_path


def test_numbers_say_which_variable_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_X", "ten")
    with pytest.raises(ImproperlyConfigured, match="TOUCHSTONE_X is 'ten'; it must be a whole number"):
        env_int("TOUCHSTONE_X", 1)


@pytest.mark.parametrize(("raw", "expected"), [("1", True), ("TRUE", True), ("off", False), ("", True)])
def test_switches(monkeypatch: pytest.MonkeyPatch, raw: str, expected: bool) -> None:
    monkeypatch.setenv("TOUCHSTONE_X", raw)
    assert env_bool("TOUCHSTONE_X", True) is expected


def test_switches_refuse_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_X", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="TOUCHSTONE_X is 'perhaps'"):
        env_bool("TOUCHSTONE_X", True)


def test_lists_and_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_X", " a, b ,,c")
    assert env_list("TOUCHSTONE_X", []) == ["a", "b", "c"]
    monkeypatch.setenv("TOUCHSTONE_X", "~/here")
    assert env_path("TOUCHSTONE_X", env_path("HOME", env_path.__globals__["Path"]("/"))).is_absolute()


def test_threads_of_torch_wait_without_spinning_unless_told_otherwise() -> None:
    """Two trainings beside each other took four times as long."""
    shown = (
        "import os; from apps.core.subprocesses import environment; print(environment()['OMP_WAIT_POLICY'])"
    )
    for given, expected in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        known = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", shown],
            cwd=Path(__file__).parents[2],
            env=known | ({"OMP_WAIT_POLICY": given} if given else {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == expected, done.stderr
