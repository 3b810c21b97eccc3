"""Homes that a server started by root can live in: pytest's own folders are closed to others."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def open_home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="touchstone-home-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home)


@contextmanager
def small_disk(*options: str) -> Iterator[Path]:
    """A file system of its own."""
    with open_home() as folder:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", ",".join(["mode=755", *options]), "tmpfs", str(folder)],
            capture_output=True, text=True, check=False,
        ) if os.geteuid() == 0 and shutil.which("mount") else None  # fmt: skip
        if done is None or done.returncode:
            pytest.skip("needs to mount a small file system, which only root may")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
