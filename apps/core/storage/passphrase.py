"""The passphrase of backups, as the commands are given it."""

from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandParser

from apps.core.errors import DomainError

_MOST_BYTES = 4096


def add_passphrase_argument(parser: CommandParser, what: str) -> None:
    parser.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        help=f"its first line is {what}; else TOUCHSTONE_BACKUP_PASSPHRASE, where that is set",
    )


def read_passphrase(path: Path | None) -> str:
    """Empty where there is none. Raises DomainError for a file without one."""
    if path is None:
        return str(settings.BACKUP_PASSPHRASE)
    try:
        with path.open("rb") as file:
            line = file.readline(_MOST_BYTES).decode().rstrip("\r\n")
    except OSError as error:
        raise DomainError(f"The file of the passphrase cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise DomainError("The file of the passphrase is no text.") from None
    if not line:
        raise DomainError(
            "The file of the passphrase begins with an empty line; its first line is the passphrase."
        )
    return line
