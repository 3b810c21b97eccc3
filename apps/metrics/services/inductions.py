"""Inductions are queued, and what they find is stored."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.annotation.models import Campaign, Comment
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.llm.models import LLMConnection
from apps.metrics.models import Aspect, Induction, Metric, MetricVerdict
from apps.metrics.selectors import active_metrics, latest_induction, list_comments, project_metric_ids
from apps.trajectories.models import Trajectory
from apps.trajectories.services import replace_facts

ADVANCE = "apps.metrics.tasks.advance_inductions"
FACT = "metric"
_BATCH_SIZE = 2000
_MIN_VALUE = 1e-6  # of a fact, whose sign is the verdict


@transaction.atomic
def start_induction(
    *,
    project: Project,
    campaign: Campaign | None = None,
    llm_connection: LLMConnection | None = None,
    seed: int = 0,
    by: Actor = None,
) -> Induction:
    """Queue an induction. llm_connection: None for the embedded engine.

    Raises DomainError where there is no comment, or another induction of the project has not finished.
    """
    if not 0 <= seed < 2**31:
        raise DomainError("The seed must be a whole number from 0 to 2147483647.", pointer="/seed")
    if not list_comments(project, campaign).exists():
        where = f"{campaign.name}" if campaign else "This project"
        raise DomainError(
            f"{where} has no comments yet. Collect comments in a campaign, or import feedback that has some."
        )
    previous = latest_induction(project, campaign)
    induction = _queue(
        lambda: Induction.objects.create(
            project=project,
            campaign=campaign,
            engine=Induction.Engine.LLM if llm_connection else Induction.Engine.EMBEDDED,
            llm_connection=llm_connection,
            seed=seed,
            previous=previous,
            created_by=person_of(by),
        )
    )
    record_audit(project=project, actor=by, verb="metrics.induced", target=str(induction), data={})
    return induction


def judge_again(induction: Induction) -> None:
    """Queue new verdicts by the metrics as they are now, unless that is queued already."""
    if not induction.is_finished:
        return
    if not active_metrics(induction).exists():
        raise DomainError(
            "There is no metric to judge by. Restore a rejected metric, or extract metrics again."
        )

    def requeue() -> Induction:
        job_queue.requeue(induction, even_done=True)
        return induction

    _queue(requeue)


def store_induction(
    induction: Induction,
    result: dict[str, Any],
    aspects: Sequence[dict[str, Any]],
    traits: Sequence[dict[str, Any]],
) -> None:
    """Store the metrics, aspects and verdicts of an induction, and finish it. Raises ClaimLost."""
    with job_queue.fenced(induction):
        previous = induction.previous.metrics.all() if induction.previous else ()
        previous_by_id = {str(metric.pk): metric for metric in previous}
        metrics, names = [], set[str]()
        for position, found in enumerate(result["metrics"]):
            known = previous_by_id.get((found["before"] or {}).get("id", ""))
            # A name and a definition that people gave to the metric of the previous induction are kept.
            name = known.name if known and known.name not in names else found["name"]
            while name in names:
                name += " (new)"
            names.add(name)
            definition = known.definition if known and known.definition else found.get("definition", "")
            metrics.append(
                Metric(
                    induction=induction,
                    position=position,
                    name=name[:200],
                    definition=definition,
                    previous=known,
                )
            )
        Metric.objects.bulk_create(metrics)
        _create_aspects(induction, metrics, aspects)
        _create_verdicts(induction, metrics, traits)
        refresh_facts(induction.project)
        summary = _without_metrics(result)
        job_queue.finish(induction, job_queue.JobState.SUCCEEDED, result=summary, progress={})


def store_new_verdicts(
    induction: Induction,
    metrics: Sequence[Metric],
    result: dict[str, Any],
    aspects: Sequence[dict[str, Any]],
    traits: Sequence[dict[str, Any]],
) -> None:
    """Replace aspects and verdicts after people changed the metrics, and finish the induction. Raises ClaimLost.

    Held-out figures are of the metrics before the change, which the result says.
    """
    with job_queue.fenced(induction):
        active = {metric.pk for metric in active_metrics(induction)}
        if active != {metric.pk for metric in metrics}:  # changed in the meantime: judged once more
            job_queue.release(induction)
            return
        inactive = Metric.objects.filter(induction=induction).exclude(pk__in=active)
        inactive_points = {
            metric.pk: list(metric.aspects.values_list("comment_id", "feedback")) for metric in inactive
        }
        Aspect.objects.filter(induction=induction).delete()
        numbers = _create_aspects(induction, metrics, aspects)
        for pk, points in inactive_points.items():  # a rejected metric keeps its points
            kept = [numbers[point] for point in points if point in numbers]
            Aspect.objects.filter(induction=induction, number__in=kept, metric=None).update(metric=pk)
        MetricVerdict.objects.filter(metric__induction=induction).delete()
        _create_verdicts(induction, metrics, traits)
        refresh_facts(induction.project)
        summary = induction.result | _without_metrics(result) | {"changed": True}
        job_queue.finish(induction, job_queue.JobState.SUCCEEDED, result=summary, progress={})


@transaction.atomic
def refresh_facts(project: Project) -> None:
    """Replace the explorer's facts by the verdicts of the project's metrics, see `selectors.project_metrics`."""
    verdicts = MetricVerdict.objects.filter(metric__in=project_metric_ids(project)).exclude(sign=0)
    existing = _lock_existing(Trajectory.objects.all(), set(verdicts.values_list("trajectory", flat=True)))
    rows = verdicts.values_list("trajectory", "metric__name", "sign", "value").order_by("pk")
    replace_facts(
        project=project,
        kind=FACT,
        facts=(
            (trajectory, name, sign * max(abs(value), _MIN_VALUE))
            for trajectory, name, sign, value in rows
            if trajectory in existing
        ),
    )


def _queue(write: Callable[[], Induction]) -> Induction:
    try:
        with transaction.atomic():
            induction = write()
    except IntegrityError:
        raise DomainError(
            "Another induction of this project is still running. Wait for its end, or cancel it."
        ) from None
    job_queue.nudge_on_commit(ADVANCE)
    return induction


def _create_aspects(
    induction: Induction, metrics: Sequence[Metric], lines: Sequence[dict[str, Any]]
) -> dict[tuple[int, str], int]:
    """The number of each aspect, by comment and point. Aspects of comments that were deleted are left out."""
    comments = _lock_existing(Comment.objects.all(), {int(line["comment"]) for line in lines})
    rows = [
        Aspect(
            induction=induction,
            metric=metrics[line["metric"]] if line["metric"] is not None else None,
            comment_id=int(line["comment"]),
            trajectory_id=int(line["trajectory"]),
            number=line["id"],
            feedback=line["feedback"],
            behaviour=line["behaviour"],
            sign=line["sign"],
            step=line["step"],
            chance=line["chance"],
            covered=line["covered"],
            example=line["example"],
            x=line["at"][0],
            y=line["at"][1],
        )
        for line in lines
        if int(line["comment"]) in comments
    ]
    Aspect.objects.bulk_create(rows, batch_size=_BATCH_SIZE)
    return {(row.comment_id, row.feedback): row.number for row in rows}


def _create_verdicts(
    induction: Induction, metrics: Sequence[Metric], lines: Sequence[dict[str, Any]]
) -> None:
    trajectories = _lock_existing(Trajectory.objects.all(), {int(line["trajectory"]) for line in lines})
    aspects = dict(Aspect.objects.filter(induction=induction).values_list("number", "pk"))
    MetricVerdict.objects.bulk_create(
        (
            MetricVerdict(
                metric=metrics[line["metric"]],
                trajectory_id=int(line["trajectory"]),
                sign=line["sign"],
                value=line["value"],
                step=line["step"],
                because_id=aspects.get(line["because"]),
                reason=line["reason"],
            )
            for line in lines
            if int(line["trajectory"]) in trajectories
        ),
        batch_size=_BATCH_SIZE,
    )


def _lock_existing(rows: Any, keys: set[int]) -> set[int]:
    """Those of the keys that have a row, locked against deletion until the transaction ends."""
    locked = rows.filter(pk__in=keys).select_for_update(no_key=True, of=("self",))
    return set(locked.values_list("pk", flat=True))


def _without_metrics(result: dict[str, Any]) -> dict[str, Any]:
    """The result without what people wrote, which is in rows that are deleted with their comments."""
    return result | {"metrics": len(result["metrics"])}
