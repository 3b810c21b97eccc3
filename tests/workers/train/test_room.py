"""What a full disk and a full memory end with: a status the worker knows, instead of a traceback."""

import errno
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from workers.train import __main__ as command


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), command.NO_DISK),
        (MemoryError(), command.NO_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory"), command.NO_MEMORY),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
            command.NO_MEMORY,
        ),
        (RuntimeError("shape mismatch"), None),
        (OSError(errno.ENOENT, "No such file"), None),
    ],
)
def test_which_errors_they_are(error: Exception, status: int | None, tmp_path: Path) -> None:
    assert command.out_of_room(error, tmp_path) == status


def test_torch_tells_a_full_disk_by_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("PytorchStreamWriter failed writing file data/3: file write failed")
    assert command.out_of_room(error, tmp_path) is None
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(100, 100, 0))  # type: ignore[attr-defined]
    assert command.out_of_room(error, tmp_path) == command.NO_DISK


def test_memory_that_cannot_be_had_is_known_by_its_words(tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, MemoryError)) as raised:
        torch.empty(2**60, dtype=torch.uint8)
    assert command.out_of_room(raised.value, tmp_path) == command.NO_MEMORY


@pytest.mark.slow
def test_a_recipe_that_needs_more_memory_than_there_is(run_directory, tiny_recipe) -> None:
    """A real one: twelve layers of width 2048 and what their optimiser holds, in 3 GiB of addresses."""
    big = replace(tiny_recipe, width=2048, layers=12, attention_heads=8)
    folder = run_directory(big)
    limit = 3 * 2**30
    done = subprocess.run(
        [sys.executable, "-m", "workers.train", str(folder)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == command.NO_MEMORY, done.stderr[-2000:]


def test_the_command_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(command, "train", train)
    assert command._train(tmp_path, []) == command.NO_DISK
