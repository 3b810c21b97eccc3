"""Passwords that commands read from a file."""

from pathlib import Path

from apps.core.errors import DomainError


def read_password_file(path: Path) -> str:
    """Its first line. Raises DomainError."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DomainError(
            f"The password cannot be read from {path}: {error}. Nothing was changed."
        ) from error
