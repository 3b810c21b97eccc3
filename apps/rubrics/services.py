"""Criteria and rubrics: made, changed, named by imports. What was used stays as it was; a change is a new version."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.rubrics.models import MOST_POINTS, Criterion, Rubric, RubricCriterion

MOST_CRITERIA = 30
# What annotators see of a criterion.
TOLD = ("definition", "scale_low", "scale_high", "good_example", "bad_example")


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDraft:
    """A criterion as somebody wrote it."""

    name: str
    definition: str = ""
    scale_low: float = 1
    scale_high: float = 5
    good_example: str = ""
    bad_example: str = ""
    weight: float = 1
    rank: int = 1


@transaction.atomic
def save_rubric(
    *,
    project: Project,
    name: str,
    criteria: Sequence[CriterionDraft],
    about: str = "",
    by: User | None = None,
) -> Rubric:
    """The rubric of this name as it is to be from now on. A version that is used stays; the next one is made.

    Criteria that did not change keep their version, so that scores under two versions of a rubric can be compared.
    Nothing is made where nothing changed.
    """
    name = name.strip()
    _check(name, criteria)
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one writer of versions
    newest = Rubric.objects.filter(project=project, name=name).order_by("-version").first()
    if newest is not None and _says(newest) == (about, list(criteria)):
        return newest
    if newest is not None and not is_used(newest):
        rubric = newest
        rubric.about = about
        rubric.save(update_fields=["about"])
        rubric.entries.all().delete()
    else:
        version = newest.version + 1 if newest else 1
        rubric = Rubric.objects.create(
            project=project, name=name, version=version, about=about, created_by=by
        )
    RubricCriterion.objects.bulk_create(
        RubricCriterion(
            rubric=rubric,
            criterion=_criterion(project, one),
            position=position,
            weight=one.weight,
            rank=one.rank,
        )
        for position, one in enumerate(criteria)
    )
    return rubric


@transaction.atomic
def save_criterion(*, project: Project, draft: CriterionDraft, origin: str) -> Criterion:
    """The criterion of this name as it is to be from now on, outside of any rubric; the next version if it is used."""
    _check("A rubric", [draft])
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one writer of versions
    return _criterion(project, draft, origin)


def is_used(row: Rubric | Criterion) -> bool:
    """Whether anything but a rubric's own list refers to it: a campaign, a score, a preference."""
    relations = [one for one in row._meta.related_objects if one.related_model is not RubricCriterion]
    return any(one.related_model._base_manager.filter(**{one.field.name: row}).exists() for one in relations)


def draft_of(entry: RubricCriterion) -> CriterionDraft:
    told = {name: getattr(entry.criterion, name) for name in TOLD}
    return CriterionDraft(name=entry.criterion.name, weight=entry.weight, rank=entry.rank, **told)


def _says(rubric: Rubric) -> tuple[str, list[CriterionDraft]]:
    return rubric.about, [draft_of(entry) for entry in rubric.entries.select_related("criterion")]


def _criterion(project: Project, draft: CriterionDraft, origin: str = Criterion.Origin.HUMAN) -> Criterion:
    """The newest version, where it says the same; else the next, or the newest mended where nobody used it."""
    told = {name: getattr(draft, name) for name in TOLD}
    newest = Criterion.objects.filter(project=project, name=draft.name).order_by("-version").first()
    if newest is not None and {name: getattr(newest, name) for name in TOLD} == told:
        return newest
    if newest is not None and not is_used(newest) and not _in_used_rubric(newest):
        Criterion.objects.filter(pk=newest.pk).update(**told)
        return newest
    version = newest.version + 1 if newest else 1
    return Criterion.objects.create(project=project, name=draft.name, version=version, origin=origin, **told)


def _in_used_rubric(criterion: Criterion) -> bool:
    return any(is_used(rubric) for rubric in criterion.rubrics.all())


def _check(name: str, criteria: Sequence[CriterionDraft]) -> None:
    if not name or len(name) > 200:
        raise DomainError("The name of a rubric has 1 to 200 characters.", pointer="/name")
    if not criteria:
        raise DomainError("A rubric needs at least one criterion.", pointer="/criteria")
    if len(criteria) > MOST_CRITERIA:
        raise DomainError(f"A rubric holds at most {MOST_CRITERIA} criteria.", pointer="/criteria")
    seen: set[str] = set()
    for place, one in enumerate(criteria):
        at = f"/criteria/{place}"
        if not one.name.strip() or len(one.name) > 200:
            raise DomainError("The name of a criterion has 1 to 200 characters.", pointer=f"{at}/name")
        if one.name in seen:
            raise DomainError(
                f"“{one.name}” is there twice; a criterion is asked once.", pointer=f"{at}/name"
            )
        seen.add(one.name)
        if not 1 <= one.scale_high - one.scale_low < MOST_POINTS:
            raise DomainError(
                f"The scale of “{one.name}” goes from {one.scale_low:g} to {one.scale_high:g}; it needs 2 to "
                f"{MOST_POINTS} points, one apart.",
                pointer=f"{at}/scale",
            )
        if one.rank < 1:
            raise DomainError(f"Ranks count from 1; “{one.name}” has {one.rank}.", pointer=f"{at}/rank")


class ImportedCriteria:
    """Criteria as imported records name them, looked up once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[tuple[str, str | None, tuple[float, float] | None], Criterion] = {}

    def of(self, name: str, definition: str | None, scale: tuple[float, float] | None) -> Criterion:
        """The newest version that says the same; where a record says something else of it, a version of its own."""
        key = (name, definition, scale)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, name: str, definition: str | None, scale: tuple[float, float] | None) -> Criterion:
        versions = Criterion.objects.filter(project=self.project, name=name).order_by("-version")
        newest = versions.first()
        told = {"definition": definition} if definition is not None else {}
        told |= {"scale_low": scale[0], "scale_high": scale[1]} if scale is not None else {}  # type: ignore[dict-item]
        if (same := versions.filter(**told).first()) is not None:
            return same
        version = newest.version + 1 if newest else 1
        return Criterion.objects.create(
            project=self.project, name=name, version=version, origin=Criterion.Origin.IMPORTED, **told
        )
