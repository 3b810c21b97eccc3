"""Records that nobody gave as such, but that were made of what people said: in a dataset version only where asked for.

An upper app registers a source of them. They are of the origin `judge`, so that they are told apart from what people
said wherever records are looked at.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from apps.accounts.models import Project
from apps.core.errors import DomainError
from workers.schema.records import JudgedRecord


@dataclass(frozen=True, slots=True)
class Source:
    """records: of a project; raises DomainError where there is nothing to make them of.

    in_test: False where people's own judgements of the same kind are what a model is to be measured on.
    """

    name: str
    title: str
    records: Callable[[Project], Iterator[JudgedRecord]]
    in_test: bool


SOURCES: dict[str, Source] = {}


def register(source: Source) -> None:
    """From an AppConfig.ready."""
    SOURCES[source.name] = source


def check_derived(names: Collection[str]) -> list[str]:
    """In order, each once. Raises DomainError for one that does not exist."""
    for name in names:
        if name not in SOURCES:
            raise DomainError(
                f"Nothing is derived as {name!r}; known are {', '.join(SOURCES)}.", pointer="/derived"
            )
    return sorted(set(names))
