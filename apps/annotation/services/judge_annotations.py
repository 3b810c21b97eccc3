"""Annotations of judges: by an annotator of their own, of the origin `judge`, outside of the overlap."""

from collections.abc import Sequence

from django.utils import timezone

from apps.accounts.models import Project
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Annotation, Annotator, Assignment, FeedbackRecord, Item, Origin
from apps.annotation.services.annotations import save_records


def save_judge_annotation(
    *, project: Project, name: str, item: int, rows: Sequence[FeedbackRecord]
) -> Annotation | None:
    """Save a revision with all records of a judge on an item; None if nothing changed. Needs a transaction."""
    annotator, _ = Annotator.objects.get_or_create(project=project, user=None, name=name)
    Item.objects.select_for_update(no_key=True).get(pk=item)
    assignment, _ = Assignment.objects.get_or_create(
        item_id=item,
        annotator=annotator,
        is_adjudication=False,
        defaults={"state": Assignment.State.BY_JUDGE, "finished_at": timezone.now()},
    )
    last = assignment.annotations.order_by("-revision").first()
    if last is not None and _answers(last) == {(type(row), row.answer) for row in rows}:
        return None
    annotation = Annotation.objects.create(
        assignment=assignment,
        revision=1 if last is None else last.revision + 1,
        origin=Origin.JUDGE,
        campaign_version=assignment.item.campaign.version,
    )
    save_records(annotation, rows)
    return annotation


def _answers(annotation: Annotation) -> set[object]:
    return {
        (type(row), row.answer) for kind in FEEDBACK_TYPES.values() for row in kind.load_records(annotation)
    }
