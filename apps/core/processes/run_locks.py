"""Who holds the lock of a run directory: `workers.train` keeps it, with its pid inside."""

import fcntl
from pathlib import Path


def writer_of(folder: Path) -> int | None:
    """The pid of the process that writes to `folder`, 0 if it does not say; None if no one does."""
    path = folder / ".lock"
    if not path.is_file():
        return None
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = file.read().strip()
            return int(said) if said.isdecimal() else 0
    return None
