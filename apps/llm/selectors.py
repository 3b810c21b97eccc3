"""Reads of LLM connections and of what they cost."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db.models import Count, DecimalField, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, TruncMonth
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.llm.models import LLMConnection, Spending, SpendingPurpose

MONTHS = 3  # months of costs that are shown before this one


def list_llm_connections(project: Project) -> "QuerySet[LLMConnection]":
    """By name, with the number of cached completions (`cached_count`) and this month's cost (`spent`)."""
    month = Spending.objects.filter(llm_connection=OuterRef("pk"), day__gte=_first_of_month())
    spent = month.order_by().values("llm_connection").annotate(sum=Sum("cost")).values("sum")
    money = DecimalField(max_digits=16, decimal_places=8)
    rows = LLMConnection.objects.filter(project=project).select_related("project")
    return rows.annotate(
        cached_count=Count("completions"),
        spent=Coalesce(Subquery(spent), Value(Decimal(0)), output_field=money),
    ).order_by("name")


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """Calls through one connection for one purpose in one month."""

    month: date
    name: str
    purpose: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal


def monthly_costs(project: Project) -> list[MonthlyCost]:
    """By month, connection and purpose, from the current month back; deleted connections included."""
    first = _first_of_month()
    back = first.year * 12 + first.month - MONTHS
    rows = Spending.objects.filter(project=project, day__gte=date(back // 12, back % 12 + 1, 1))
    grouped = (
        rows.annotate(month=TruncMonth("day"))
        .order_by("-month", "name", "purpose")
        .values_list("month", "name", "purpose")
        .annotate(
            *(Sum(field) for field in ("calls", "failed", "prompt_tokens", "completion_tokens", "cost"))
        )
    )
    return [
        MonthlyCost(month, name, SpendingPurpose(purpose).label, *figures)
        for month, name, purpose, *figures in grouped
    ]


def get_llm_connection(project: Project, name: str) -> LLMConnection:
    found = LLMConnection.objects.filter(project=project, name=name).first()
    if found is None:
        there = ", ".join(project.llm_connections.values_list("name", flat=True)) or "none"
        raise NotFound(
            f"{project.slug} has no LLM connection named {name} (existing: {there}). An owner can create one on the "
            "page LLM connections."
        )
    return found


def _first_of_month() -> date:
    return timezone.now().date().replace(day=1)
