"""Where JSON lines go: standard output, or a file that is replaced when all of them are there."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LineWriter = Callable[[bytes], None]


@contextmanager
def line_writer(path: str | None) -> Iterator[LineWriter]:
    """path: None and `-` are standard output. Raises OSError."""
    if path in (None, "-"):
        sys.stdout.flush()
        yield _write_to_output
        sys.stdout.buffer.flush()
        return
    target = Path(str(path))
    if target.exists() and not target.is_file():  # a device or a pipe, which cannot be replaced
        with target.open("wb") as file:
            yield lambda line: _ignore(file.write(line))
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield lambda line: _ignore(file.write(line))
        Path(temporary).chmod(_usual_mode())
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write_to_output(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def _ignore(count: int) -> None:
    """A writer returns nothing."""


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
