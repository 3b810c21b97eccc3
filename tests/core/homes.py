"""Homes that a server started by root can live in: pytest's own folders are closed to others."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="touchstone-home-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home)
