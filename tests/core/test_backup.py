"""What cannot be restored is refused in words, and leaves the home as empty as it was.

That a real one comes back whole is shown where there is something to lose: tests/faults.
"""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

from apps.accounts.models import Project
from apps.core.storage import backup, backup_archive
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.webhooks.models import WebhookEvent
from apps.webhooks.services import add_webhook
from tests.core.homes import open_home
from tests.faults.stack import ROOT, Stack
from tests.migrated import fill_home

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_programs")]


@pytest.fixture(scope="module")
def stack(forked_programs: None) -> Iterator[Stack]:
    """A home that is empty but for its tables. Into one without them is restored in tests/core/test_roles.py."""
    with open_home() as home:
        fill_home(home)
        stack = Stack(home)
        yield stack
        stack.destroy()


def _restore(stack: Stack, file: Path, *arguments: str) -> str:
    command = [sys.executable, "manage.py", "restore", str(file), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def made(db: None, tmp_path: Path) -> Callable[..., Path]:
    """make(**head): the backup of this version's empty database, but for what its head says."""

    def make(**head: Any) -> Path:
        with backup_archive.writing(tmp_path / "made") as out:
            out.add_json(backup_archive.HEAD, backup._head() | head)
            out.add("artifacts/a", io.BytesIO(b"x" * 100_000), 100_000)
            out.finish()
        return tmp_path / "made"

    return make


def test_one_of_a_newer_version(stack: Stack, made: Callable[..., Path]) -> None:
    said = _restore(stack, made(migrations=[["annotation", "0099_from_the_future"]], touchstone="9.9"))
    assert "was created by a newer Touchstone (9.9" in said and "annotation.0099_from_the_future" in said
    assert "Restore it with that version or a later one" in said


PASSPHRASE = "correct horse battery"


@pytest.fixture
def secrets(transactional_db: None, settings: Any, tmp_path: Path) -> tuple[Path, Path]:
    """An encrypted backup of a project with a language model and a webhook; and the file of its passphrase."""
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    project = Project.objects.create(slug="alpha", name="Alpha")
    spec = LLMConnectionSpec(name="judge", base_url="http://127.0.0.1:9/v1", model="tiny")
    create_llm_connection(project=project, spec=spec, key="sk-somebody", by=None)
    _, secret = add_webhook(project=project, url="http://127.0.0.1:9/", events=WebhookEvent.values, by=None)
    (tmp_path / "passphrase").write_text(f"{PASSPHRASE}\n")
    made = backup.backup(tmp_path / "sealed", passphrase=PASSPHRASE)
    assert made["encrypted"] and made["secrets"] == {"carried": 2, "left_out": []}
    left_out = backup.backup(tmp_path / "open")["secrets"]
    assert left_out["carried"] == 0 and "the key of the LLM connection judge of alpha" in left_out["left_out"]
    for name, held in (("sealed", False), ("open", True)):
        found = (tmp_path / name).read_bytes()
        assert (zstandard.FRAME_HEADER in found[:8]) is held
        assert b"sk-somebody" not in found and secret.encode() not in found
    return tmp_path / "sealed", tmp_path / "passphrase"


@contextmanager
def _home() -> Iterator[Stack]:
    with open_home() as home:
        fill_home(home)
        stack = Stack(home)
        try:
            yield stack
        finally:
            stack.destroy()


def test_secrets_come_along_encrypted_and_nothing_else_opens_it(
    stack: Stack, secrets: tuple[Path, Path], tmp_path: Path
) -> None:
    file, passphrase = secrets
    wrong = tmp_path / "wrong"
    wrong.write_text("another passphrase")
    assert "is encrypted. Give its passphrase" in _restore(stack, file)
    assert "the passphrase is not the one" in _restore(stack, file, "--passphrase-file", str(wrong))
    whole = file.read_bytes()
    for name, damaged in (
        ("cut", whole[:-1]),
        ("flipped", whole[:-300] + bytes([whole[-300] ^ 1]) + whole[-299:]),
    ):
        (tmp_path / name).write_bytes(damaged)
        said = _restore(stack, tmp_path / name, "--passphrase-file", str(passphrase))
        assert "was changed, is missing, or is cut off. Nothing of it was kept" in said
    with _home() as other:
        restored = other.call("restore", str(file), "--passphrase-file", str(passphrase))
        assert restored["secrets"] == {"carried": 2, "enter_again": []}
        again = other.call("backup", str(tmp_path / "again"), "--passphrase-file", str(passphrase))
        assert again["secrets"] == {"carried": 2, "left_out": []}, "the new home reads them"


def test_one_that_is_not_encrypted_is_not_taken_for_one_that_is(
    stack: Stack, made: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    said = _restore(stack, made(), "--passphrase-file", str(tmp_path / "passphrase"))
    assert "is not encrypted" in said and "leave the passphrase out" in said


def test_one_that_was_cut(stack: Stack, made: Callable[..., Path]) -> None:
    file = made()
    file.write_bytes(file.read_bytes()[:-100])
    assert "cannot be restored" in _restore(stack, file)


def test_something_else(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("dear diary")
    assert "no backup of Touchstone" in _restore(stack, tmp_path / "notes")


def test_after_all_that_a_good_one_still_fits(stack: Stack, made: Callable[..., Path]) -> None:
    assert stack.call("restore", str(made()))["artifacts"] == 1
