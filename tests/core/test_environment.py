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
