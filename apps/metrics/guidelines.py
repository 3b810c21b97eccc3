"""What annotators praise and criticize, as a text for an agent's prompt."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Count

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.core.errors import DomainError
from apps.metrics.models import Metric
from apps.metrics.selectors import metric_definition, metric_examples, project_metrics

DESCRIPTION = (
    "what people praise and blame by the metrics induced from comments, as Markdown for an agent's prompt"
)
_EXAMPLES = 3  # of each side of a metric
_LONGEST = 300  # characters of an example


def export_guidelines(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """Lines of Markdown: the accepted metrics, or else those the latest induction proposes, by number of points.

    filters: `campaigns`, for metrics extracted from the comments of these. Other filters are refused, since a metric is
    made from the comments of many annotators. Raises DomainError, also where there is no metric.
    """
    other = sorted(set(filters) - {"campaigns"})
    if other:
        raise DomainError(
            f"Guidelines cannot be filtered by {other[0]}, since a metric comes from many comments. Use campaigns."
        )
    rows = project_metrics(project)
    if rows.filter(state=Metric.State.ACCEPTED).exists():
        rows = rows.filter(state=Metric.State.ACCEPTED)
    if filters.get("campaigns"):
        named = Campaign.objects.filter(project=project, name__in=filters["campaigns"])
        rows = rows.filter(induction__campaign__in=named)
    newest = {metric.name: metric for metric in rows.order_by("induction", "position")}
    if not newest:
        raise DomainError(
            "There are no metrics to export as guidelines. Extract metrics from comments first."
        )
    point_counts = dict(
        Metric.objects.filter(pk__in=[metric.pk for metric in newest.values()])
        .annotate(points=Count("aspects"))
        .values_list("pk", "points")
    )
    ordered = sorted(newest.values(), key=lambda metric: (-point_counts[metric.pk], metric.pk))
    return _lines(ordered)


def _lines(metrics: list[Metric]) -> Iterator[str]:
    yield "# What people want of you\n"
    yield "\nPeople who read runs of agents like you praised and blamed the following, the most frequent first.\n"
    for metric in metrics:
        yield f"\n## {_plain(metric.name)}\n"
        if metric.definition:
            yield f"\n{_plain(metric_definition(metric))}\n"
        for sign, title in ((1, "Praised"), (-1, "Blamed")):
            examples = metric_examples(metric, sign)[:_EXAMPLES]
            if examples:
                yield f"\n{title}:\n"
                yield from (f"- {_plain(example)}\n" for example in examples)


def _plain(text: str) -> str:
    """On one line, so that a comment cannot become a heading or a list item."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
