"""What CI makes of the dependency audit."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def audit() -> Any:
    loader = SourceFileLoader("audit", str(Path(__file__).parents[1] / ".ci" / "audit"))
    spec = spec_from_loader("audit", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _said(*dependencies: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(dependencies), "fixes": []})


GOOD = {"name": "attrs", "version": "1", "vulns": []}
SKIPPED = {"name": "torch", "skip_reason": "not found"}
BAD = {"name": "django", "version": "5", "vulns": [{"id": "CVE-1", "fix_versions": ["5.1"]}]}


def test_a_vulnerability_fails_and_is_named(audit: Any) -> None:
    status, words = audit.judge(_said(GOOD, SKIPPED, BAD))
    assert status == 1
    assert "2 of 3 packages looked at, 1 known" in words and "django 5: CVE-1, mended in 5.1" in words


def test_none_is_good(audit: Any) -> None:
    assert audit.judge(_said(GOOD, SKIPPED))[0] == 0


@pytest.mark.parametrize("output", ["", "Traceback ...", _said(SKIPPED)])
def test_without_a_database_it_is_skipped_in_words(audit: Any, output: str) -> None:
    status, words = audit.judge(output)
    assert status == 0 and "skipped" in words
