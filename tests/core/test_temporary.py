"""Temporary files of a project: counted over processes, limited, gone when done or when their process died."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.core.storage import temporary_files
from apps.core.storage.temporary_files import TemporaryFile, TooMuchTemporary, folder_of, temporary_bytes

KB = 2**10


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.HOME, settings.MAX_TEMPORARY_BYTES = tmp_path, 100 * KB
    monkeypatch.setattr(temporary_files, "_STEP", KB)
    return tmp_path


def test_little_stays_in_memory() -> None:
    with TemporaryFile(1, 10 * KB) as file:
        file.write(b"x" * 10 * KB)
        assert temporary_bytes(1) == 0
        file.seek(0)
        assert file.read() == b"x" * 10 * KB


def test_more_is_a_file_of_its_owner_alone_until_it_is_closed() -> None:
    with TemporaryFile(1, 10) as file:
        file.write(b"y" * 9)
        file.write(b"x" * 20 * KB)
        (path,) = folder_of(1).iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert folder_of(1).stat().st_mode & 0o777 == 0o700
        assert temporary_bytes(1) == 9 + 20 * KB
        file.seek(-1, os.SEEK_END)
        assert (file.read(), file.seek(0), file.read(10)) == (b"x", 0, b"y" * 9 + b"x")
    assert not list(folder_of(1).iterdir())


def test_all_files_of_a_project_together_are_limited_and_others_are_not_held_up() -> None:
    with TemporaryFile(1, 0) as first, TemporaryFile(1, 0) as second, TemporaryFile(2, 0) as other:
        first.write(b"x" * 90 * KB)
        with pytest.raises(TooMuchTemporary, match="TOUCHSTONE_MAX_TEMPORARY_MB") as caught:
            for _ in range(20):
                second.write(b"x" * KB)
        assert caught.value.status == 429
        other.write(b"x" * 90 * KB)
    assert temporary_bytes(1) == temporary_bytes(2) == 0


def test_what_a_dead_process_left_is_removed() -> None:
    folder = folder_of(1)
    folder.mkdir(parents=True)
    script = (
        f"import fcntl, os, signal; f = open({str(folder / 'left')!r}, 'wb'); fcntl.flock(f, fcntl.LOCK_EX)"
    )
    script += "; f.write(b'x' * 50); f.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", script], check=False)
    assert [path.name for path in folder.iterdir()] == ["left"]
    assert temporary_bytes(1) == 0
    assert not list(folder.iterdir())
