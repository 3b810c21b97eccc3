"""A database server whose starter is gone, and which was told to stop but does not.

PostgreSQL 18 told to stop while it recovers from a killed backend can wait for its I/O workers forever. The process
that comes next would wait with it, since it holds the home's lock.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

# Seconds a server is waited for that no one owns; then it is told to end at once, as after a crash, and then killed.
GRACE = ((20.0, signal.SIGQUIT), (35.0, signal.SIGKILL))


class OrphanWatch:
    """Looks at the server of a data folder while someone waits for its lock."""

    def __init__(self, data: str) -> None:
        self._data = data
        self._began = time.monotonic()
        self._left = list(GRACE)

    def look(self) -> None:
        """End the server if it has had its time and no one owns it; one that has an owner is left alone."""
        if self._left and time.monotonic() - self._began > self._left[0][0]:
            _, sent = self._left.pop(0)
            pid = orphan_of(self._data)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, sent)


def orphan_of(data: str) -> int | None:
    """The pid of the server of a data folder, if the process that started it is gone."""
    try:
        pid = int((Path(data) / "postmaster.pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    except (OSError, ValueError, IndexError):
        return None  # there is none, or it ended while we looked
    if data not in command:
        return None  # a pid used again by something else
    try:
        is_owned = "python" in Path(f"/proc/{parent}/exe").readlink().name
    except OSError:
        is_owned = False  # init, which others may not look into, or gone
    return None if is_owned else pid
