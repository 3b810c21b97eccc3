"""Judgements of judges: under a name of their own, of the origin `judge`, and in nobody's place."""

from collections.abc import Sequence

from django.utils import timezone

from apps.accounts.models import Project
from apps.annotation.feedback_types import KINDS
from apps.annotation.models import Annotation, Annotator, Assignment, FeedbackRecord, Item, Origin


def write_as_judge(
    *, project: Project, name: str, item: int, rows: Sequence[FeedbackRecord]
) -> Annotation | None:
    """A revision with all the judge says of an item; None where that is what it said last. Needs a transaction."""
    annotator, _ = Annotator.objects.get_or_create(project=project, user=None, name=name)
    Item.objects.select_for_update(no_key=True).get(pk=item)
    assignment, _ = Assignment.objects.get_or_create(
        item_id=item,
        annotator=annotator,
        is_adjudication=False,
        defaults={"state": Assignment.State.BY_JUDGE, "finished_at": timezone.now()},
    )
    last = assignment.annotations.order_by("-revision").first()
    if last is not None and _said(last) == {(type(row), row.answer) for row in rows}:
        return None
    annotation = Annotation.objects.create(
        assignment=assignment,
        revision=1 if last is None else last.revision + 1,
        origin=Origin.JUDGE,
        campaign_version=assignment.item.campaign.version,
    )
    for kind in KINDS.values():
        kind.save(annotation, rows)
    return annotation


def _said(annotation: Annotation) -> set[object]:
    return {(type(row), row.answer) for kind in KINDS.values() for row in kind.rows_of(annotation)}
