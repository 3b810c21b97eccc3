"""Training records from inductions: verdicts as scores, and points of comments as weak step labels."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.datasets.derived_records import DerivedSource
from apps.metrics.models import Aspect, Induction, Metric, MetricVerdict
from apps.metrics.selectors import metric_definition, project_metrics
from apps.rubrics.models import Criterion
from apps.trajectories.selectors import load_trajectories
from workers.schema import ScoreRecord, StepLabelRecord
from workers.schema.records import Trajectory

T = TypeVar("T", MetricVerdict, Aspect)
JUDGE = "induced metrics"  # the annotator name of these scores
DEFAULT_WEIGHT = 0.5  # of a step label whose chance is not known
_BATCH_SIZE = 200  # trajectories in memory


def scores(project: Project) -> Iterator[ScoreRecord]:
    """The verdict of each accepted metric on each trajectory it applies to, on the scale of its criterion.

    A value of 0 is the middle of the scale; certain praise and certain criticism are its ends.
    """
    rows = project_metrics(project).filter(state=Metric.State.ACCEPTED).order_by("induction")
    metrics = {metric.name: metric for metric in rows.select_related("criterion")}
    chosen = {metric.pk: metric for metric in metrics.values() if metric.criterion is not None}
    if not chosen:
        raise DomainError(
            "No metric has been accepted. Accept metrics of an induction, then freeze the dataset again."
        )
    verdicts = (
        MetricVerdict.objects.filter(metric__in=chosen)
        .exclude(sign=0)
        .order_by("trajectory__task", "trajectory", "pk")
    )
    definitions = {pk: metric_definition(metric) for pk, metric in chosen.items()}
    for verdict, trajectory in _with_trajectories(verdicts.iterator(chunk_size=2000)):
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
            definition=definitions[verdict.metric_id] or None,
            note=verdict.reason or None,
            criterion_weight=1.0,  # praise is the top of the scale
        )


def step_labels(project: Project) -> Iterator[StepLabelRecord]:
    """A label for each point of the latest induction that is tied to a step, weighted by the chance of that step.

    Points of rejected metrics are left out. The annotator is the author of the comment.
    """
    induction = Induction.objects.filter(project=project, metrics__isnull=False).order_by("-pk").first()
    if induction is None:
        raise DomainError("No comment is tied to a step yet. Extract metrics from comments first.")
    rows = induction.aspects.filter(step__isnull=False).exclude(metric__state=Metric.State.REJECTED)
    aspects = rows.select_related("comment__annotation__assignment__annotator").order_by(
        "trajectory__task", "trajectory", "number"
    )
    for aspect, trajectory in _with_trajectories(aspects.iterator(chunk_size=2000)):
        weight = DEFAULT_WEIGHT if aspect.chance is None else aspect.chance
        if aspect.step not in trajectory.agent_steps:
            continue
        yield StepLabelRecord(
            annotator=aspect.comment.annotation.assignment.annotator.name,
            origin="judge",
            weight=round(weight, 4),
            trajectory=trajectory,
            labels={trajectory.agent_steps.index(aspect.step): "good" if aspect.sign > 0 else "bad"},
        )


def _with_trajectories(rows: Iterable[T]) -> Iterator[tuple[T, Trajectory]]:
    found = iter(rows)
    kept: dict[int, Trajectory] = {}
    while part := list(islice(found, _BATCH_SIZE)):
        missing = {row.trajectory_id for row in part} - kept.keys()
        kept = {key: run for key, run in kept.items() if key in {row.trajectory_id for row in part}}
        kept |= load_trajectories(missing)
        yield from ((row, kept[row.trajectory_id]) for row in part if row.trajectory_id in kept)


SOURCES = (
    DerivedSource(
        "metric_scores", "verdicts of the accepted metrics, as scores by a judge", scores, in_test=True
    ),
    DerivedSource(
        "comment_steps",
        "points of comments, as weak labels of the steps they are about (in training and validation only)",
        step_labels,
        in_test=False,
    ),
)
