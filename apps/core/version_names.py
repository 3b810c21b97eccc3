"""Names of datasets and models: `project/name@version`, the version and sometimes the project left out."""

from dataclasses import dataclass

from apps.core.errors import DomainError
from workers.schema.patterns import TextPattern

_NAME = TextPattern(r"(?:(?P<project>[-\w]+)/)?(?P<name>[-\w]+)(?:@(?P<version>[1-9]\d{0,8}))?")
SLUG_PATTERN = r"[-\w]{1,60}"
_SLUG = TextPattern(SLUG_PATTERN)


@dataclass(frozen=True, slots=True)
class VersionedName:
    """version None: the newest."""

    project: str
    name: str
    version: int | None = None

    def __str__(self) -> str:
        return f"{self.project}/{self.name}" + (f"@{self.version}" if self.version else "")


def parse_name(text: str, *, project: str | None = None) -> VersionedName:
    """`text` as a name. project: what it stands in where the text names none, and the only one it may name."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise DomainError(
            f"{text!r} is no name; write project/name@version, or project/name for the newest version."
        )
    named = found["project"] or project
    if named is None:
        raise DomainError(f"{text!r} names no project; write project/{text.strip()}.")
    if project is not None and named != project:
        raise DomainError(f"{text!r} belongs to the project {named}, this is {project}.")
    return VersionedName(named, found["name"], int(found["version"]) if found["version"] else None)


def check_slug(name: str, *, what: str, pointer: str = "/name") -> str:
    """A name for something new. Raises DomainError."""
    if not _SLUG.fullmatch(name):
        raise DomainError(
            f"{name!r} cannot be the name of a {what}: use up to 60 letters, digits, hyphens and underscores.",
            pointer=pointer,
        )
    return name
