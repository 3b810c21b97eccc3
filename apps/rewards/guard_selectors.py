"""Reads of a guard's decisions, and how often people found each rule right."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.core.errors import NotFound
from apps.core.share_interval import wilson_interval
from apps.rewards.models import Endpoint, GuardDecision

REVIEWS: dict[str, dict[str, Any]] = {
    "waiting": {"is_sampled": True, "is_right": None},
    "right": {"is_right": True},
    "wrong": {"is_right": False},
}


@dataclass(frozen=True, slots=True)
class RulePrecision:
    """A kind of decision of a rule. count: in the log. waiting: for a person. right, wrong: as people answered. low,
    high: 95 % interval of the precision."""

    rule: str
    decision: str
    count: int
    waiting: int
    right: int
    wrong: int

    @property
    def answered(self) -> int:
        return self.right + self.wrong

    @property
    def precision(self) -> float | None:
        return self.right / self.answered if self.answered else None

    @property
    def low(self) -> float:
        return wilson_interval(self.right, self.answered)[0]

    @property
    def high(self) -> float:
        return wilson_interval(self.right, self.answered)[1]

    @property
    def decision_label(self) -> str:
        return GuardDecision.Decision(self.decision).label


def guard_decisions(endpoint: Endpoint) -> QuerySet[GuardDecision]:
    return endpoint.guard_decisions.select_related("endpoint", "answered_by")


def guard_decision(endpoint: Endpoint, pk: int) -> GuardDecision:
    """Raises NotFound."""
    found = guard_decisions(endpoint).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no decision {pk} of the guard of {endpoint.name}; old ones are deleted.")
    return found


def next_for_review(endpoint: Endpoint) -> GuardDecision | None:
    """The one that has waited longest."""
    return guard_decisions(endpoint).filter(**REVIEWS["waiting"]).order_by("at", "pk").first()


def rule_precisions(endpoint: Endpoint) -> list[RulePrecision]:
    """Most decisions first. Of what no rule decided, `rule` is empty."""
    counts = {name: Count("pk", filter=Q(**conditions)) for name, conditions in REVIEWS.items()}
    groups = endpoint.guard_decisions.order_by().values("rule", "decision")
    rows: Any = groups.annotate(count=Count("pk"), **counts)
    found = [RulePrecision(**row) for row in rows]
    return sorted(found, key=lambda row: (-row.count, row.rule, row.decision))
