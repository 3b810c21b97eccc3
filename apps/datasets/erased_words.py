"""What a person leaves in data that was made from their feedback: names and words, taken out where they are erased.

Apps above register what they made of feedback: reports that name people, metrics with their words.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Project
from apps.core.registries import NamedRegistry
from apps.datasets.models import DatasetVersion, Export
from workers.schema.patterns import PatternMatch, TextPattern

ERASED = "[erased]"
_QUOTED = TextPattern("“([^”]*)”")
_LEAST = 12  # characters of a text that is looked for within others; a shorter one only where it is quoted or alone


@dataclass(frozen=True, slots=True)
class Erasure:
    """names: of the person in the project, to what stands for them. comments: keys of those that go, still there."""

    project: Project
    names: Mapping[str, str]
    comments: tuple[int, ...] = ()


Erasing = Callable[[Erasure], None]
_ERASING: NamedRegistry[str, Erasing] = NamedRegistry()


def register(app: str, erasing: Erasing) -> None:
    """From an AppConfig.register. It is called before the feedback is deleted."""
    _ERASING[app] = erasing


def erase_derived(erasure: Erasure) -> None:
    """Within the transaction of the erasure. Apps above come first."""
    for erasing in reversed(list(_ERASING.values())):
        erasing(erasure)
    for version in DatasetVersion.objects.filter(project=erasure.project):
        known = (
            {erasure.names.get(name, name): counts for name, counts in version.annotators.items()},
            with_other_names(version.filters, erasure.names),
        )
        if known != (version.annotators, version.filters):
            DatasetVersion.objects.filter(pk=version.pk).update(annotators=known[0], filters=known[1])
    for export in Export.objects.filter(project=erasure.project):
        if (filters := with_other_names(export.filters, erasure.names)) != export.filters:
            Export.objects.filter(pk=export.pk).update(filters=filters)


def with_other_names(
    value: Any, names: Mapping[str, str], *, under: Collection[str] = ("annotators",)
) -> Any:
    """JSON with other names, as keys too, below the keys in `under` only: elsewhere an equal word is no name."""
    if isinstance(value, dict):
        return {
            key: _renamed(each, names) if key in under else with_other_names(each, names, under=under)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [with_other_names(each, names, under=under) for each in value]
    return value


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(name, name): each for name, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


class ErasedTexts:
    """Texts of a person, to be taken out of texts that quote them."""

    def __init__(self, texts: Iterable[str]) -> None:
        found = {text.strip() for text in texts} - {""}
        self._long = sorted((text for text in found if len(text) >= _LEAST), key=len, reverse=True)
        self._short = found.difference(self._long)

    def __bool__(self) -> bool:
        return bool(self._long or self._short)

    def taken_out_of(self, text: str) -> str:
        for erased in self._long:
            if erased in text:
                text = text.replace(erased, ERASED)
        if not self._short:
            return text
        lines = [ERASED if line.strip() in self._short else line for line in text.split("\n")]
        return _QUOTED.sub(self._quotation, "\n".join(lines))

    def is_in(self, text: str) -> bool:
        return self.taken_out_of(text) != text

    def _quotation(self, found: PatternMatch) -> str:
        return f"“{ERASED}”" if found[1].strip() in self._short else found[0]
