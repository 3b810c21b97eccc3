"""Full disks and folders without write permission, described for a person. Importable without Django."""

import errno
import getpass
import os
import tempfile
from pathlib import Path

from apps.core.errors import DomainError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


def in_words(error: OSError, folder: Path | None = None) -> str | None:
    """The sentence for an error of the disk; None where it is something else."""
    where = folder or error.filename or "the home"
    if error.errno in _FULL:
        return f"The disk of {where} is full. Free some space there, or use another home (--home DIR)."
    if error.errno in _CLOSED:
        return (
            f"{where} cannot be written by {_user()} ({os.strerror(error.errno or 0).lower()}). Let that user own "
            "it, or use another home (--home DIR)."
        )
    return None


def require_writable(folder: Path) -> None:
    """Raise DomainError unless files can be made in `folder`, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-") as file:
            file.write(b"0" * 65536)
            file.flush()
    except OSError as error:
        raise DomainError(in_words(error, folder) or f"{folder} cannot be used: {error}.") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
