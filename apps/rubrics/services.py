"""Saving criteria and rubrics. A version in use never changes; a change creates a new version."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.rubrics.models import MOST_POINTS, Criterion, Rubric, RubricCriterion

MOST_CRITERIA = 30
# Fields that annotators see.
CONTENT_FIELDS = ("definition", "scale_low", "scale_high", "good_example", "bad_example")


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDraft:
    """The fields of a criterion before it is saved."""

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
    """Save a rubric; a version in use stays, and a new version is created.

    Unchanged criteria keep their version, so that scores of two rubric versions can be compared. Saving without a
    change creates nothing.
    """
    name = name.strip()
    _check(name, criteria)
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one writer of versions
    newest = Rubric.objects.filter(project=project, name=name).order_by("-version").first()
    if newest is not None and _content(newest) == (about, list(criteria)):
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
            criterion=_criterion(project, draft),
            position=position,
            weight=draft.weight,
            rank=draft.rank,
        )
        for position, draft in enumerate(criteria)
    )
    return rubric


@transaction.atomic
def save_criterion(*, project: Project, draft: CriterionDraft, origin: str) -> Criterion:
    """Save a criterion outside of any rubric; a new version if the newest one is in use."""
    _check("A rubric", [draft])
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one writer of versions
    return _criterion(project, draft, origin)


def is_used(row: Rubric | Criterion) -> bool:
    """Whether anything but a rubric's entries refers to it: a campaign, a score, a preference."""
    relations = [
        relation for relation in row._meta.related_objects if relation.related_model is not RubricCriterion
    ]
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: row}).exists()
        for relation in relations
    )


def draft_of(entry: RubricCriterion) -> CriterionDraft:
    fields = {name: getattr(entry.criterion, name) for name in CONTENT_FIELDS}
    return CriterionDraft(name=entry.criterion.name, weight=entry.weight, rank=entry.rank, **fields)


def _content(rubric: Rubric) -> tuple[str, list[CriterionDraft]]:
    return rubric.about, [draft_of(entry) for entry in rubric.entries.select_related("criterion")]


def _criterion(project: Project, draft: CriterionDraft, origin: str = Criterion.Origin.HUMAN) -> Criterion:
    """The newest version if equal; otherwise a new version, or the newest one updated if it is not in use."""
    fields = {name: getattr(draft, name) for name in CONTENT_FIELDS}
    newest = Criterion.objects.filter(project=project, name=draft.name).order_by("-version").first()
    if newest is not None and {name: getattr(newest, name) for name in CONTENT_FIELDS} == fields:
        return newest
    if newest is not None and not is_used(newest) and not _in_used_rubric(newest):
        Criterion.objects.filter(pk=newest.pk).update(**fields)
        return newest
    version = newest.version + 1 if newest else 1
    return Criterion.objects.create(
        project=project, name=draft.name, version=version, origin=origin, **fields
    )


def _in_used_rubric(criterion: Criterion) -> bool:
    return any(is_used(rubric) for rubric in criterion.rubrics.all())


def _check(name: str, criteria: Sequence[CriterionDraft]) -> None:
    if not name or len(name) > 200:
        raise DomainError("The name of a rubric must have between 1 and 200 characters.", pointer="/name")
    if not criteria:
        raise DomainError("A rubric needs at least one criterion.", pointer="/criteria")
    if len(criteria) > MOST_CRITERIA:
        raise DomainError(f"A rubric can have at most {MOST_CRITERIA} criteria.", pointer="/criteria")
    seen: set[str] = set()
    for place, draft in enumerate(criteria):
        at = f"/criteria/{place}"
        if not draft.name.strip() or len(draft.name) > 200:
            raise DomainError(
                "The name of a criterion must have between 1 and 200 characters.", pointer=f"{at}/name"
            )
        if draft.name in seen:
            raise DomainError(
                f"Duplicate criterion “{draft.name}”; give each criterion its own name.", pointer=f"{at}/name"
            )
        seen.add(draft.name)
        if not 1 <= draft.scale_high - draft.scale_low < MOST_POINTS:
            raise DomainError(
                f"The scale of “{draft.name}” goes from {draft.scale_low:g} to {draft.scale_high:g}; it must have 2 to "
                f"{MOST_POINTS} points at a distance of one.",
                pointer=f"{at}/scale",
            )
        if draft.rank < 1:
            raise DomainError(
                f"The rank of “{draft.name}” must be 1 or more, not {draft.rank}.", pointer=f"{at}/rank"
            )


class ImportedCriteria:
    """Criteria of imported records, cached."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[tuple[str, str | None, tuple[float, float] | None], Criterion] = {}

    def of(self, name: str, definition: str | None, scale: tuple[float, float] | None) -> Criterion:
        """The newest equal version; a new version for another definition or scale."""
        key = (name, definition, scale)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, name: str, definition: str | None, scale: tuple[float, float] | None) -> Criterion:
        versions = Criterion.objects.filter(project=self.project, name=name).order_by("-version")
        newest = versions.first()
        fields = {"definition": definition} if definition is not None else {}
        fields |= {"scale_low": scale[0], "scale_high": scale[1]} if scale is not None else {}  # type: ignore[dict-item]
        if (same := versions.filter(**fields).first()) is not None:
            return same
        version = newest.version + 1 if newest else 1
        return Criterion.objects.create(
            project=self.project, name=name, version=version, origin=Criterion.Origin.IMPORTED, **fields
        )
