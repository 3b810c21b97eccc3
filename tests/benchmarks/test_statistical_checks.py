"""The cheap ones of the table; all of it is `python -m benchmarks.statistical_checks`."""

import json
import sys

import pytest

from benchmarks import statistical_checks
from benchmarks.statistical_simulations import simulated_checks

pytestmark = pytest.mark.ml


@pytest.mark.parametrize("number", [2, 11])
def test_what_the_audit_found_is_found_no_more(number: int) -> None:
    assert simulated_checks()[number](True).holds


def test_the_table_names_what_is_not_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["statistical_checks", "--quick", "--only", "9", "14"])
    assert statistical_checks.main() == 0
    said = capsys.readouterr().out
    assert "| 9 | `joint`" in said and "| 14 | Learning curve" in said and "not met" not in said
    monkeypatch.setattr(sys, "argv", ["statistical_checks", "--quick", "--json", "--only", "14"])
    monkeypatch.setattr(statistical_checks, "_timed", lambda *_: {"number": 14, "holds": False})
    statistical_checks.main()
    assert json.loads(capsys.readouterr().out) == [{"number": 14, "holds": False}]
