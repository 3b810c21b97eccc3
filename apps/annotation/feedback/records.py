"""What counts of a project's feedback, as a stream of workers.schema records."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from django.db.models import Max, OuterRef, Q, QuerySet, Subquery
from django.utils.dateparse import parse_datetime

from apps.accounts.models import Project
from apps.annotation.models import Comment, Item, Preference, Submission
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from workers import schema

KINDS = ("pairwise", "comment", "outcome")
FILTERS = ("campaigns", "kinds", "origins", "annotators", "since")
CHUNK = 500
_KEPT = 2000  # trajectories held while streaming; comparisons of one task come together


def check_filters(filters: dict[str, Any]) -> None:
    """Raises DomainError for a filter or a kind that does not exist."""
    unknown = [name for name in filters if name not in FILTERS]
    if unknown:
        raise DomainError(
            f"Unknown filter {unknown[0]!r}; known are {', '.join(FILTERS)}.", pointer=f"/{unknown[0]}"
        )
    for kind in filters.get("kinds") or ():
        if kind not in KINDS:
            raise DomainError(f"Unknown kind {kind!r}; known are {', '.join(KINDS)}.", pointer="/kinds")
    if filters.get("since") and parse_datetime(filters["since"]) is None:
        raise DomainError("since is a time such as 2026-01-31T12:00:00Z.", pointer="/since")


def current_submissions(project: Project, filters: dict[str, Any]) -> QuerySet[Submission]:
    """The newest revision of every assignment that matches, in a stable order."""
    newest = (
        Submission.objects.filter(assignment=OuterRef("assignment"), aside=False)
        .values("assignment")
        .annotate(newest=Max("revision"))
        .values("newest")
    )
    rows = Submission.objects.filter(
        assignment__item__campaign__project=project, aside=False, revision=Subquery(newest)
    )
    if filters.get("campaigns"):
        rows = rows.filter(assignment__item__campaign__name__in=filters["campaigns"])
    if filters.get("origins"):
        rows = rows.filter(origin__in=filters["origins"])
    if filters.get("annotators"):
        rows = rows.filter(assignment__annotator__name__in=filters["annotators"])
    if filters.get("since"):
        rows = rows.filter(created_at__gte=parse_datetime(filters["since"]))
    return rows.order_by("assignment__item__task_id", "assignment__item_id", "assignment_id").select_related(
        "assignment__annotator", "assignment__item__campaign"
    )


def feedback_records(
    *, project: Project, filters: dict[str, Any] | None = None
) -> Iterator[schema.FeedbackRecord]:
    """Records of what counts: the newest revision of each judgement, and the outcomes of the trajectories meant.

    filters, each optional: {"campaigns": [name], "kinds": [...], "origins": [...], "annotators": [name],
    "since": ISO time}.
    """
    filters = filters or {}
    check_filters(filters)
    kinds = filters.get("kinds") or KINDS
    cache = _Trajectories()
    if "pairwise" in kinds or "comment" in kinds:
        for one in submitted(project=project, filters=filters, cache=cache):
            yield from (record for record in one.records if schema.records.KIND_OF[type(record)] in kinds)
    if "outcome" in kinds and not (
        filters.get("annotators") or filters.get("origins") or filters.get("since")
    ):
        yield from _outcomes(project, filters, cache)


class Submitted:
    """One submission and its records."""

    def __init__(self, submission: Submission, records: list[schema.FeedbackRecord]) -> None:
        self.submission = submission
        self.records = records


def submitted(
    *, project: Project, filters: dict[str, Any], cache: "_Trajectories | None" = None
) -> Iterator[Submitted]:
    cache = cache or _Trajectories()
    rows = current_submissions(project, filters).prefetch_related(
        "preferences__criterion", "comments", "assignment__item__places"
    )
    chunk: list[Submission] = []
    for submission in rows.iterator(chunk_size=CHUNK):
        chunk.append(submission)
        if len(chunk) == CHUNK:
            yield from _said(chunk, cache)
            chunk = []
    yield from _said(chunk, cache)


def _said(chunk: list[Submission], cache: "_Trajectories") -> Iterator[Submitted]:
    cache.load({place.trajectory_id for one in chunk for place in one.assignment.item.places.all()})
    for submission in chunk:
        assignment = submission.assignment
        common: dict[str, Any] = {
            "annotator": assignment.annotator.name,
            "origin": submission.origin,
            "item": f"{assignment.item.campaign.name}:{assignment.item.key}",
        }
        places = [cache[place.trajectory_id] for place in assignment.item.places.all()]
        records: list[schema.FeedbackRecord] = [
            _preference(row, places, common) for row in submission.preferences.all()
        ]
        records += [_comment(row, cache[row.trajectory_id], common) for row in submission.comments.all()]
        yield Submitted(submission, records)


def _preference(
    row: Preference, places: list[schema.Trajectory], common: dict[str, Any]
) -> schema.PreferenceRecord:
    return schema.PreferenceRecord(
        a=places[0],
        b=places[1],
        choice=row.choice,  # type: ignore[arg-type]
        strength=row.strength,  # type: ignore[arg-type]
        criterion=row.criterion.name if row.criterion else None,
        **common,
    )


def _comment(row: Comment, trajectory: schema.Trajectory, common: dict[str, Any]) -> schema.CommentRecord:
    anchor = None
    if row.first_step is not None and row.last_step is not None:
        chars = (
            (row.first_char, row.last_char)
            if row.first_char is not None and row.last_char is not None
            else None
        )
        anchor = schema.Anchor(steps=(row.first_step, row.last_step), quote=row.quote or None, chars=chars)
    return schema.CommentRecord(trajectory=trajectory, text=row.text, anchor=anchor, sign=row.sign, **common)  # type: ignore[arg-type]


def _outcomes(
    project: Project, filters: dict[str, Any], cache: "_Trajectories"
) -> Iterator[schema.OutcomeRecord]:
    rows = Trajectory.objects.filter(project=project, success__isnull=False)
    if filters.get("campaigns"):
        items = Item.objects.filter(campaign__project=project, campaign__name__in=filters["campaigns"])
        rows = rows.filter(Q(places__item__in=items)).distinct()
    ids = list(rows.order_by("task_id", "pk").values_list("pk", flat=True))
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        cache.load(set(chunk))
        for pk in chunk:
            trajectory = cache[pk]
            if trajectory.success is not None:
                yield schema.OutcomeRecord(
                    trajectory=trajectory, success=trajectory.success, reward=trajectory.reward
                )


class _Trajectories:
    """Loaded trajectories, the least recently used dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, schema.Trajectory] = OrderedDict()

    def load(self, ids: set[int]) -> None:
        for pk in ids & self._kept.keys():
            self._kept.move_to_end(pk)
        self._kept.update(load_trajectories(ids - self._kept.keys()))
        while len(self._kept) > max(_KEPT, len(ids)):
            self._kept.popitem(last=False)

    def __getitem__(self, pk: int) -> schema.Trajectory:
        return self._kept[pk]
