"""The home and everything in it is its owner's alone. Importable without Django.

Files are made so: every process of ours begins with `make_private`. What an earlier version, or a hand, left open is
closed at a start. Where root started us, another user runs PostgreSQL in a folder of the home and has to get there: the
home may then be passed through (0711), not looked into, and that folder is left to that user.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

UMASK = 0o077
_OPEN = 0o077
_PASSED_THROUGH = 0o711
_CLOSED = ".closed"  # marks a home that was closed to its last file
_POSTGRES = "postgres"


def make_private() -> None:
    """What this process and its children make from now on is their user's alone."""
    os.umask(UMASK)


def close_home(home: Path, *, wholly: bool = False) -> int:
    """Take away what others may do with the home and what lies in it, without what lies deeper: no one gets there any
    more. wholly: all of it, once. How many were open. What is another user's is left alone."""
    if not home.is_dir() or home == Path.home() or home.stat().st_mode & stat.S_ISVTX:
        return 0  # what is not ours alone to begin with, as /tmp is
    closed = _close(home, _mode_of_home(home))
    wholly = wholly and not (home / _CLOSED).exists()
    for path in _below(home, deep=wholly):
        closed += _close(path)
    if wholly and home.stat().st_uid == os.geteuid():
        (home / _CLOSED).touch(mode=0o600)
    return closed


def open_paths(home: Path, most: int) -> list[str]:
    """The first of what others may read or change, as `path (mode)`. Of many files, `most` are looked at."""
    found = []
    status = home.lstat()
    if stat.S_IMODE(status.st_mode) & _OPEN & ~_mode_of_home(home):
        found.append(f"{home} ({_mode(status)})")
    for path, _ in zip(_below(home, deep=True), range(most), strict=False):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & _OPEN:
            found.append(f"{path.relative_to(home)} ({_mode(status)})")
    return found


def _mode_of_home(home: Path) -> int:
    """What it may have: more than 0700 where another user's PostgreSQL lives in it."""
    try:
        is_others = (home / _POSTGRES).lstat().st_uid != home.lstat().st_uid
    except OSError:
        is_others = False
    return _PASSED_THROUGH if is_others else 0o700


def _below(folder: Path, *, deep: bool) -> Iterator[Path]:
    """What lies in it, without PostgreSQL's own files, whose modes it looks at itself; not through links."""
    try:
        entries = list(folder.iterdir())
    except OSError:  # gone meanwhile, or another user's
        return
    for path in entries:
        yield path
        if deep and path.name != _POSTGRES and path.is_dir() and not path.is_symlink():
            yield from _below(path, deep=True)


def _close(path: Path, keep: int = 0o700) -> int:
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
            return 0
        mode = stat.S_IMODE(status.st_mode)
        if not mode & _OPEN & ~keep:
            return 0
        path.chmod(mode & (0o700 | keep))
    except OSError:  # gone meanwhile, or on a disk that is only read
        return 0
    return 1


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"
