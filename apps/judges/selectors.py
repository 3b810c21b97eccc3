"""Reads of language models, of what they cost, and of judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.db.models import Count, DecimalField, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, TruncMonth
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.judges.models import Judge, Judged, Judging, LanguageModel, Spending
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory

TRIED = 3  # runs of a trial, or comparisons
MONTHS = 3  # that costs are shown of


def language_models_of(project: Project) -> "QuerySet[LanguageModel]":
    """By name, with how many answers of each are kept (`kept`), and what this month cost (`spent`)."""
    month = Spending.objects.filter(language_model=OuterRef("pk"), day__gte=_first_of_month())
    spent = month.order_by().values("language_model").annotate(sum=Sum("cost")).values("sum")
    money = DecimalField(max_digits=16, decimal_places=8)
    rows = LanguageModel.objects.filter(project=project).select_related("project")
    return rows.annotate(
        kept=Count("answers"), spent=Coalesce(Subquery(spent), Value(Decimal(0)), output_field=money)
    ).order_by("name")


@dataclass(frozen=True, slots=True)
class Costs:
    """What a model was asked for one purpose in a month."""

    month: date
    name: str
    purpose: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal


def costs_of(project: Project) -> list[Costs]:
    """By month, model and purpose, this month and those before it; of removed models too."""
    first = _first_of_month()
    back = first.year * 12 + first.month - MONTHS
    rows = Spending.objects.filter(project=project, day__gte=date(back // 12, back % 12 + 1, 1))
    grouped = (
        rows.annotate(month=TruncMonth("day"))
        .order_by("-month", "name", "purpose")
        .values_list("month", "name", "purpose")
        .annotate(*(Sum(one) for one in ("calls", "failed", "prompt_tokens", "completion_tokens", "cost")))
    )
    return [
        Costs(month, name, Spending.Purpose(purpose).label, *figures)
        for month, name, purpose, *figures in grouped
    ]


def language_model_named(project: Project, name: str) -> LanguageModel:
    found = LanguageModel.objects.filter(project=project, name=name).first()
    if found is None:
        there = ", ".join(project.language_models.values_list("name", flat=True)) or "none"
        raise NotFound(
            f"There is no language model {name} in {project.slug} (there: {there}). An owner adds one on the page "
            "Language models."
        )
    return found


def _first_of_month() -> date:
    return timezone.now().date().replace(day=1)


def judge_in(project: Project, pk: int) -> Judge:
    rows = Judge.objects.select_related("project", "language_model", "rubric")
    found = rows.filter(project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no judge {pk} in this project.")
    return found


def judge_named(project: Project, name: str) -> Judge:
    rows = Judge.objects.select_related("project", "language_model", "rubric")
    found = rows.filter(project=project, name=name).first()
    if found is None:
        there = ", ".join(project.judges.values_list("name", flat=True)) or "none"
        raise NotFound(
            f"There is no judge {name} in {project.slug} (there: {there}). Make one on the page Judges."
        )
    return found


def judgings_of(project: Project, judge: Judge | None = None) -> "QuerySet[Judging]":
    """The newest first, with how many of its runs have an answer (`answered`), and how many have none (`failed`)."""
    rows = Judging.objects.filter(judge__project=project)
    if judge is not None:
        rows = rows.filter(judge=judge)
    counts = {
        name: Count("judged", filter=Q(judged__state=state))
        for name, state in (("answered", Judged.State.DONE), ("failed", Judged.State.FAILED))
    }
    return rows.select_related("judge__language_model", "campaign").annotate(**counts).order_by("-pk")


def judging_in(project: Project, pk: int) -> Judging:
    rows = Judging.objects.select_related(
        "judge__project", "judge__language_model", "judge__rubric", "campaign__project"
    )
    found = rows.filter(judge__project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no judging {pk} in this project.")
    return found


def others_of(judging: Judging) -> "QuerySet[Judging]":
    """What it can be held against: judgings of the same campaign by judges of the same mode."""
    rows = Judging.objects.filter(campaign=judging.campaign_id, judge__mode=judging.judge.mode)
    rows = rows.filter(campaign__isnull=False, judge__project=judging.judge.project_id).exclude(pk=judging.pk)
    return rows.select_related("judge").order_by("-pk")


@dataclass(frozen=True, slots=True)
class Said:
    """Of one criterion, as the page tells it. value: in words; None where it could not be told. step_b: of run b."""

    criterion: str
    value: str | None
    spread: float | None
    reason: str
    step: int | None
    step_b: int | None = None


def told(judging: Judging, rows: "QuerySet[Judged]") -> list[tuple[Judged, list[Said]]]:
    """What a judge said of each."""
    asks = judging.judge.asks
    return [
        (row, [_said(criterion, one) for criterion, one in zip(asks, row.answer or (), strict=False)])
        for row in rows.select_related("trajectory__task", "other", "item")
    ]


def _said(criterion: Criterion | None, one: dict[str, Any]) -> Said:
    name = criterion.name if criterion else "Overall"
    if "value" in one:
        value = None
        if one["value"] is not None and criterion is not None:
            value = f"{one['value']:.2g} of {criterion.scale_high:g}"
        return Said(name, value, one["spread"], one["reason"], one["step"])
    chance = one["chance"]
    value = None if chance is None else f"A {100 * chance:.0f} %, B {100 - 100 * chance:.0f} %"
    return Said(name, value, one["spread"], one["reason"], one["step_a"], one["step_b"])


def trial_runs(judge: Judge, numbers: Sequence[int]) -> list[Trajectory]:
    """The runs of these numbers; without any, some that people judged: of one task where the judge compares.

    Raises NotFound for a number that is none.
    """
    rows = Trajectory.objects.filter(project=judge.project).select_related("task")
    if numbers:
        found = rows.in_bulk(list(numbers))
        gone = next((one for one in numbers if one not in found), None)
        if gone is not None:
            raise NotFound(f"There is no run {gone} in this project.")
        return [found[one] for one in numbers]
    if judge.mode == Judge.Mode.SCORE:
        return list(rows.order_by("-pk")[:TRIED])
    several = rows.order_by().values("task").annotate(n=Count("pk")).filter(n__gt=1).order_by("-task")
    task = several.values_list("task", flat=True).first()
    return list(rows.filter(task=task).order_by("pk")[: TRIED + 1]) if task is not None else []
