"""What people praise and blame, as guidance for an agent: a text to be put into its prompt."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Count

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.core.errors import DomainError
from apps.metrics.models import Metric
from apps.metrics.selectors import counting, definition_of, examples_of

DESCRIPTION = (
    "what people praise and blame by the metrics induced from comments, as Markdown for an agent's prompt"
)
_EXAMPLES = 3  # of each side of a metric
_LONGEST = 300  # characters of an example


def export_guidelines(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """Lines of Markdown: the accepted metrics, or else what the newest induction proposes, the most spoken of first.

    filters: `campaigns`, to have only metrics induced from these or from all. Others are refused: a metric is made of
    what many people said. Raises DomainError, also where there is no metric.
    """
    other = sorted(set(filters) - {"campaigns"})
    if other:
        raise DomainError(
            f"Guidelines are of metrics, which are induced from all that was said; they cannot be had by {other[0]}."
        )
    rows = counting(project)
    if rows.filter(state=Metric.State.ACCEPTED).exists():
        rows = rows.filter(state=Metric.State.ACCEPTED)
    if filters.get("campaigns"):
        named = Campaign.objects.filter(project=project, name__in=filters["campaigns"])
        rows = rows.filter(induction__campaign__in=named)
    newest = {metric.name: metric for metric in rows.order_by("induction", "position")}
    if not newest:
        raise DomainError("There is no metric to make guidelines of; induce some from comments first.")
    spoken = dict(
        Metric.objects.filter(pk__in=[metric.pk for metric in newest.values()])
        .annotate(points=Count("aspects"))
        .values_list("pk", "points")
    )
    ordered = sorted(newest.values(), key=lambda metric: (-spoken[metric.pk], metric.pk))
    return _lines(ordered)


def _lines(metrics: list[Metric]) -> Iterator[str]:
    yield "# What people want of you\n"
    yield "\nPeople who read runs of agents like you praised and blamed the following, the most frequent first.\n"
    for metric in metrics:
        yield f"\n## {_plain(metric.name)}\n"
        if metric.definition:
            yield f"\n{_plain(definition_of(metric))}\n"
        for sign, title in ((1, "Praised"), (-1, "Blamed")):
            examples = examples_of(metric, sign)[:_EXAMPLES]
            if examples:
                yield f"\n{title}:\n"
                yield from (f"- {_plain(example)}\n" for example in examples)


def _plain(text: str) -> str:
    """On one line, so that nobody's words become a heading or an item of their own."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
