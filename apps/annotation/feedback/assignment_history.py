"""What was answered in an assignment so far, and the revisions that an import adds."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Annotation, Assignment, FeedbackRecord


@dataclass
class PendingRevision:
    """A revision to be written: all records of its annotator on the item, by question key."""

    number: int
    origin: str
    rows: dict[Hashable, FeedbackRecord] = field(default_factory=dict)


@dataclass
class AssignmentHistory:
    """Records of an assignment: all answers so far (to find duplicates), the last revision, and new revisions."""

    ever: set[Hashable] = field(default_factory=set)
    last: PendingRevision | None = None
    new: list[PendingRevision] = field(default_factory=list)
    _new_keys: set[Hashable] = field(default_factory=set)

    def add(self, row: FeedbackRecord, origin: str) -> bool:
        """Add a record; whether it is new. One that replaces a record of the same import starts another revision."""
        value = (type(row), row.answer)
        if value in self.ever:
            return False
        self.ever.add(value)
        if not self.new or row.question_key in self._new_keys or self.new[-1].origin != origin:
            before = self.new[-1] if self.new else self.last
            self.new.append(
                PendingRevision(
                    number=before.number + 1 if before else 1,
                    origin=origin,
                    rows=dict(before.rows) if before else {},
                )
            )
            self._new_keys = set()
        self._new_keys.add(row.question_key)
        self.new[-1].rows[row.question_key] = row
        return True


def load_histories(assignments: Iterable[Assignment]) -> dict[int, AssignmentHistory]:
    histories: dict[int, AssignmentHistory] = {
        assignment.pk: AssignmentHistory() for assignment in assignments
    }
    annotations = (
        Annotation.objects.filter(assignment_id__in=list(histories))
        .order_by("revision")
        .prefetch_related(*(kind.related_name for kind in FEEDBACK_TYPES.values()))
    )
    for annotation in annotations:
        history = histories[annotation.assignment_id]
        rows = [
            row for kind in FEEDBACK_TYPES.values() for row in getattr(annotation, kind.related_name).all()
        ]
        history.last = PendingRevision(
            annotation.revision, annotation.origin, {row.question_key: row for row in rows}
        )
        history.ever.update((type(row), row.answer) for row in rows)
    return histories


def write_revisions(new: dict[int, list[PendingRevision]]) -> None:
    versions = dict(Assignment.objects.filter(pk__in=list(new)).values_list("pk", "item__campaign__version"))
    pairs = [
        (
            Annotation(
                assignment_id=pk,
                revision=revision.number,
                origin=revision.origin,
                campaign_version=versions[pk],
            ),
            revision,
        )
        for pk, revisions in new.items()
        for revision in revisions
    ]
    Annotation.objects.bulk_create([annotation for annotation, _ in pairs])
    written: dict[type[FeedbackRecord], list[FeedbackRecord]] = defaultdict(list)
    for annotation, revision in pairs:
        for row in revision.rows.values():
            fresh = row.copy_unsaved()
            fresh.annotation = annotation
            written[type(row)].append(fresh)
    for model, rows in written.items():
        model.objects.bulk_create(rows)  # type: ignore[attr-defined]
