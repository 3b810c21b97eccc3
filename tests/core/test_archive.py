"""What a damaged, cut or foreign file is answered with, before anything of it is used."""

import io
import stat
from functools import partial
from pathlib import Path

import pytest

from apps.core.errors import DomainError
from apps.core.storage import backup_archive, passphrase_encryption


@pytest.fixture(autouse=True)
def cheap_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the work for each key; the cost is in the head of a file."""
    writer = partial(passphrase_encryption.SealedWriter, cost=15)
    monkeypatch.setattr(passphrase_encryption, "SealedWriter", writer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "all.backup"
    with backup_archive.writing(path) as out:
        out.add_json(backup_archive.HEAD, {"format": 1})
        out.add("tables/a/000000", io.BytesIO(b"1\tone\n" * 50_000), 300_000)
        out.add("artifacts/model", io.BytesIO(bytes(range(256)) * 2000), 512_000)
        out.finish()
    return path


def test_what_was_written_is_read(path: Path) -> None:
    with backup_archive.reading(path) as source:
        assert source.head == {"format": 1}
        members = {name: file.read() for name, file in source}
    assert members == {"tables/a/000000": b"1\tone\n" * 50_000, "artifacts/model": bytes(range(256)) * 2000}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_members_nobody_reads_are_checked_too(path: Path) -> None:
    with backup_archive.reading(path) as source:
        assert [name for name, _ in source] == ["tables/a/000000", "artifacts/model"]


def _restore(path: Path) -> None:
    with backup_archive.reading(path) as source:
        for _, file in source:
            file.read(10)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
def test_a_cut_file_is_refused(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DomainError, match=r"cannot be restored.*use another backup"):
        _restore(path)


def test_a_flipped_bit_is_refused(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    for place in range(len(whole) // 10, len(whole), len(whole) // 7):
        whole[place] ^= 0x10
        path.write_bytes(whole)
        with pytest.raises(DomainError, match="cannot be restored"):
            _restore(path)
        whole[place] ^= 0x10


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(DomainError, match="no backup of Touchstone"):
        _restore(tmp_path / "notes.txt")
    with pytest.raises(DomainError, match="does not exist"):
        _restore(tmp_path / "absent")


PASSPHRASE = "correct horse battery"


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    path = tmp_path / "encrypted.backup"
    with backup_archive.writing(path, PASSPHRASE) as out:
        out.add_json(backup_archive.HEAD, {"format": 1})
        out.add("artifacts/model", io.BytesIO(b"of somebody" * 300_000), 3_300_000)
        out.finish()
    return path


def test_an_encrypted_one_is_read_by_its_passphrase(encrypted: Path) -> None:
    assert stat.S_IMODE(encrypted.stat().st_mode) == 0o600 and b"backup.json" not in encrypted.read_bytes()
    with backup_archive.reading(encrypted, PASSPHRASE) as source:
        assert {name: file.read() for name, file in source} == {"artifacts/model": b"of somebody" * 300_000}


def test_a_passphrase_that_is_wrong_missing_or_too_many_is_said(encrypted: Path, path: Path) -> None:
    for file, passphrase, said in (
        (encrypted, "another passphrase", "the passphrase is not the one"),
        (encrypted, "", "is encrypted. Give its passphrase: --passphrase-file"),
        (path, PASSPHRASE, "is not encrypted"),
    ):
        with pytest.raises(DomainError, match=said), backup_archive.reading(file, passphrase):
            pass


def test_of_a_damaged_one_not_even_the_head_is_given(encrypted: Path) -> None:
    whole = encrypted.read_bytes()
    for damaged in (whole[:-1], whole + b"x", whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]):
        encrypted.write_bytes(damaged)
        with (
            pytest.raises(DomainError, match="Nothing of it was kept"),
            backup_archive.reading(encrypted, PASSPHRASE),
        ):
            pytest.fail("it was opened")


def test_an_existing_file_is_not_written_over(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(DomainError, match="is there already"), backup_archive.writing(path):
        pass
    assert path.read_bytes() == before


def test_a_failed_backup_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), backup_archive.writing(tmp_path / "new") as out:
        out.add_json(backup_archive.HEAD, {})
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(DomainError, match="could not be written"),
        backup_archive.writing(tmp_path / "absent" / "new"),
    ):
        pass


@pytest.mark.parametrize(("size", "how"), [(5, "grew"), (50, "shrank")])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, size: int, how: str) -> None:
    with pytest.raises(DomainError, match=how), backup_archive.writing(tmp_path / "new") as out:
        out.add("artifacts/live", io.BytesIO(b"0123456789"), size)
