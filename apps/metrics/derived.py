"""What is made of inductions for training: verdicts as scores, points of comments as weak labels of steps."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.datasets.derived import Source
from apps.metrics.models import Aspect, Induction, Metric, Verdict
from apps.metrics.selectors import counting, definition_of
from apps.rubrics.models import Criterion
from apps.trajectories.selectors import load_trajectories
from workers.schema import ScoreRecord, StepLabelRecord
from workers.schema.records import Trajectory

T = TypeVar("T", Verdict, Aspect)
JUDGE = "induced metrics"  # who scores
UNSURE = 0.5  # the weight of a step label where nobody says how sure its step is
_AT_ONCE = 200  # trajectories held


def scores(project: Project) -> Iterator[ScoreRecord]:
    """The verdict of each accepted metric on each run it applies to, on the scale of its criterion.

    The middle of the scale is 0, its ends are praise and blame that are certain.
    """
    rows = counting(project).filter(state=Metric.State.ACCEPTED).order_by("induction")
    metrics = {one.name: one for one in rows.select_related("criterion")}
    chosen = {one.pk: one for one in metrics.values() if one.criterion is not None}
    if not chosen:
        raise DomainError(
            "No metric was accepted; accept some of an induction, then freeze with their verdicts."
        )
    verdicts = (
        Verdict.objects.filter(metric__in=chosen)
        .exclude(sign=0)
        .order_by("trajectory__task", "trajectory", "pk")
    )
    told = {pk: definition_of(one) for pk, one in chosen.items()}
    for verdict, trajectory in _with_runs(verdicts.iterator(chunk_size=2000)):
        criterion = chosen[verdict.metric_id].criterion
        assert isinstance(criterion, Criterion)
        low, high = criterion.scale_low, criterion.scale_high
        yield ScoreRecord(
            annotator=JUDGE,
            origin="judge",
            trajectory=trajectory,
            criterion=criterion.name,
            value=low + (high - low) * (verdict.value + 1) / 2,
            scale=(low, high),
            definition=told[verdict.metric_id] or None,
            note=verdict.reason or None,
        )


def step_labels(project: Project) -> Iterator[StepLabelRecord]:
    """A label for each point of the newest induction that is tied to a step, weighed by how likely that step is meant.

    Points of metrics that were rejected are left out. The annotator is who wrote the comment.
    """
    induction = Induction.objects.filter(project=project, metrics__isnull=False).order_by("-pk").first()
    if induction is None:
        raise DomainError("No comment was tied to a step yet; induce metrics from comments first.")
    rows = induction.aspects.filter(step__isnull=False).exclude(metric__state=Metric.State.REJECTED)
    aspects = rows.select_related("comment__annotation__assignment__annotator").order_by(
        "trajectory__task", "trajectory", "number"
    )
    for aspect, trajectory in _with_runs(aspects.iterator(chunk_size=2000)):
        weight = UNSURE if aspect.chance is None else aspect.chance
        if aspect.step not in trajectory.agent_steps:
            continue
        yield StepLabelRecord(
            annotator=aspect.comment.annotation.assignment.annotator.name,
            origin="judge",
            weight=round(weight, 4),
            trajectory=trajectory,
            labels={trajectory.agent_steps.index(aspect.step): "good" if aspect.sign > 0 else "bad"},
        )


def _with_runs(rows: Iterable[T]) -> Iterator[tuple[T, Trajectory]]:
    found = iter(rows)
    kept: dict[int, Trajectory] = {}
    while part := list(islice(found, _AT_ONCE)):
        missing = {row.trajectory_id for row in part} - kept.keys()
        kept = {key: run for key, run in kept.items() if key in {row.trajectory_id for row in part}}
        kept |= load_trajectories(missing)
        yield from ((row, kept[row.trajectory_id]) for row in part if row.trajectory_id in kept)


SOURCES = (
    Source("metric_scores", "verdicts of the accepted metrics, as scores by a judge", scores, in_test=True),
    Source(
        "comment_steps",
        "points of comments, as weak labels of the steps they are about (in training and validation only)",
        step_labels,
        in_test=False,
    ),
)
