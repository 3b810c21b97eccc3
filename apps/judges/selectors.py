"""Reads of language models, and of what they cost."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db.models import Count, DecimalField, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, TruncMonth
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.judges.models import LanguageModel, Spending

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
