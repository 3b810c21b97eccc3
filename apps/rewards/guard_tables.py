"""The table of a guard's decisions."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.rewards.guard_selectors import REVIEWS
from apps.rewards.models import Endpoint, GuardDecision

_NO_RULE = "(none)"
_SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


class GuardDecisionTable(DataTable[GuardDecision]):
    """options: project, endpoint."""

    name = "guard-decisions"
    nouns = ("decision", "decisions")
    default_sort = "-time"
    columns = (
        TableColumn(
            "time", "Time", value="at", sort="at", kind="time", is_link=True, is_fixed=True, is_indexed=True
        ),
        TableColumn("decision", "Decision", template="rewards/cells/_guard_decision.html"),
        TableColumn("rule", "Rule"),
        TableColumn("reason", "Reason", template="rewards/cells/_guard_reason.html"),
        TableColumn("review", "Review", template="rewards/cells/_guard_review.html"),
        TableColumn("milliseconds", "Latency, ms", kind="number", help="Within the service"),
        TableColumn("reward", "Reward", kind="number", is_shown=False),
        TableColumn("version", "Revision", kind="number", is_shown=False),
        TableColumn("run", "Policy run", is_shown=False),
        TableColumn("policy_version", "Policy version", is_shown=False),
        TableColumn("caller", "Key", is_shown=False),
    )

    def __init__(
        self,
        request: object,
        rows: QuerySet[GuardDecision],
        *,
        project: Project,
        endpoint: Endpoint,
        rules: list[str],
    ) -> None:
        """rules: those that decided something."""
        self.filters = (
            TableFilter("decision", "Decision", GuardDecision.Decision.choices, "decision"),
            TableFilter("rule", "Rule", [(rule or _NO_RULE, rule or "no rule") for rule in rules], _by_rule),
            TableFilter("review", "Review", [(name, name.capitalize()) for name in REVIEWS], _by_review),
            TableFilter("within", "Last", [(name, name) for name in _SPANS], _within),
        )
        super().__init__(request, rows, project=project, endpoint=endpoint)  # type: ignore[arg-type]

    def row_url(self, row: GuardDecision) -> str:
        return reverse(
            "rewards:guard-decision", args=[self.project.slug, self.options["endpoint"].name, row.pk]
        )

    def row_label(self, row: GuardDecision) -> str:
        return f"{row.get_decision_display()} {row.rule}".strip()


def _by_rule(rows: Any, value: str) -> Any:
    return rows.filter(rule="" if value == _NO_RULE else value)


def _by_review(rows: Any, value: str) -> Any:
    return rows.filter(**REVIEWS[value])


def _within(rows: Any, value: str) -> Any:
    return rows.filter(at__gte=timezone.now() - _SPANS[value])
