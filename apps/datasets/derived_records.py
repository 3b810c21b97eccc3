"""Derived records: labels computed from the feedback of people, included in a dataset version only on request.

An upper app registers a source. Derived records have the origin `judge`, which distinguishes them from the feedback of
people everywhere.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.registries import NamedRegistry
from workers.schema.records import JudgedRecord


@dataclass(frozen=True, slots=True)
class DerivedSource:
    """records: the derived records of a project; raises DomainError if there is nothing to derive them from.

    in_test: False if models are evaluated on people's own feedback of the same type.
    """

    name: str
    title: str
    records: Callable[[Project], Iterator[JudgedRecord]]
    in_test: bool


DERIVED_SOURCES: NamedRegistry[str, DerivedSource] = NamedRegistry()


def register(source: DerivedSource) -> None:
    """From an AppConfig.register."""
    DERIVED_SOURCES[source.name] = source


def check_derived(names: Collection[str]) -> list[str]:
    """The names, sorted and without duplicates. Raises DomainError for an unknown name."""
    for name in names:
        if name not in DERIVED_SOURCES:
            raise DomainError(
                f"There is no derived label {name!r}; choose from {', '.join(DERIVED_SOURCES)}.",
                pointer="/derived",
            )
    return sorted(set(names))
