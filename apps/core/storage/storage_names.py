"""Names in the artifact store and paths below the home are made here and nowhere else; a test holds us to it.

A name is a relative POSIX path of parts, each of which is checked: none can lead out of where it stands, hide, or be
read as something else by a shell, a bucket or a URL.
"""

from pathlib import Path

from django.conf import settings
from django.utils.http import content_disposition_header

from apps.core.errors import DomainError

LONGEST_PART = 200
LONGEST_NAME = 1000
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_HEXADECIMAL = frozenset("0123456789abcdef")
_DIGEST_LENGTH = 64


def storage_name(*parts: str | int) -> str:
    """The name made of `parts`. Raises DomainError for a part that may not stand in one."""
    checked = [_part(str(part)) for part in parts]
    return check_name("/".join(checked))


def tree_name(name: str, inside: Path) -> str:
    """The name of a file that is at the relative path `inside` of the tree `name`."""
    return storage_name(*check_name(name).split("/"), *inside.parts)


def home_path(*parts: str | int) -> Path:
    """A path below the home."""
    return Path(settings.HOME) / storage_name(*parts)


def check_name(name: str) -> str:
    """A name that is stored already, as a row or a backup has it: it leads nowhere else. Raises DomainError.

    More characters are taken than new names have: older stores hold files of imported models under their own names.
    """
    parts = name.split("/")
    is_plain = len(name) <= LONGEST_NAME and not any(ord(each) < 32 or each in "\\\x7f" for each in name)
    if not is_plain or any(not part or part.startswith(".") for part in parts):
        raise DomainError(f"{name[:LONGEST_PART]!r} is no name for an artifact.")
    return name


def download_header(file_name: str) -> str:
    """The header Content-Disposition of a download. What a file name may not hold is replaced by hyphens."""
    plain = "".join(each if each in _CHARACTERS else "-" for each in file_name[:LONGEST_PART])
    return (
        content_disposition_header(as_attachment=True, filename=plain.lstrip(".") or "file") or "attachment"
    )


def is_digest(text: str) -> bool:
    """Whether `text` is a SHA-256 as it is written here: 64 lower-case hexadecimal digits."""
    return len(text) == _DIGEST_LENGTH and _HEXADECIMAL.issuperset(text)


def _part(part: str) -> str:
    if 0 < len(part) <= LONGEST_PART and not part.startswith(".") and _CHARACTERS.issuperset(part):
        return part
    raise DomainError(
        f"{part[:LONGEST_PART]!r} cannot be part of a stored name: it has 1 to {LONGEST_PART} characters of A-Z, "
        "a-z, 0-9, dot, hyphen and underscore, and begins with no dot."
    )
