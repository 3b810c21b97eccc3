"""Reads of rubrics that several callers share."""

from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.rubrics.models import Rubric


def newest_rubrics(project: Project) -> QuerySet[Rubric]:
    """The newest version of each rubric of a project, by name."""
    newest = (
        Rubric.objects.filter(project=project, name=OuterRef("name")).order_by("-version").values("pk")[:1]
    )
    return Rubric.objects.filter(project=project, pk=Subquery(newest)).order_by("name")


def rubric_named(project: Project, text: str, *, pointer: str | None = None) -> Rubric:
    """The rubric `NAME@VERSION`, or the newest version of `NAME`. Raises NotFound."""
    rows = Rubric.objects.filter(project=project).order_by("-version")
    name, _, version = text.rpartition("@")
    rubric = None
    if name and version.isdecimal() and len(version) < 10:
        rubric = rows.filter(name=name, version=int(version)).first()
    rubric = rubric or rows.filter(name=text).first()
    if rubric is None:
        raise NotFound(f"There is no rubric {text!r} in this project.", pointer=pointer)
    return rubric


def rubric_in(project: Project, pk: int) -> Rubric:
    rubric = Rubric.objects.filter(project=project, pk=pk).first()
    if rubric is None:
        raise NotFound(f"There is no rubric {pk} in this project.")
    return rubric
