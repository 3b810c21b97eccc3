"""What people do with the metrics of an induction: accept, edit, reject, merge and split them."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor, require_person
from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.metrics.models import Aspect, Induction, Metric
from apps.metrics.selectors import (
    active_metrics,
    metric_definition,
    metric_degenerate_reason,
    metric_examples,
)
from apps.metrics.services.inductions import judge_again, refresh_facts
from apps.rubrics.models import Criterion, Rubric
from apps.rubrics.services import CriterionDraft, save_criterion, save_rubric


@transaction.atomic
def accept_metric(*, metric: Metric, by: Actor) -> Criterion:
    """Make it a criterion with the origin `induced` and a scale from 1 to 5: the newest version under its name.

    Raises DomainError where it is proposed and its verdicts do not distinguish trajectories, Forbidden where no person
    accepts it.
    """
    require_person(by, "accept a metric")
    metric = _lock(metric)
    _require_active(metric)
    if metric.state == Metric.State.PROPOSED and (reason := metric_degenerate_reason(metric)):
        raise DomainError(
            f"{metric.name} cannot be accepted. {reason} Split it, merge it with another metric, or reject it."
        )
    good, bad = metric_examples(metric, 1), metric_examples(metric, -1)
    draft = CriterionDraft(
        name=metric.name,
        definition=metric_definition(metric),
        good_example="\n".join(good[:3]),
        bad_example="\n".join(bad[:3]),
    )
    criterion = save_criterion(project=metric.induction.project, draft=draft, origin=Criterion.Origin.INDUCED)
    metric.criterion, metric.state = criterion, Metric.State.ACCEPTED
    metric.save(update_fields=["criterion", "state"])
    refresh_facts(metric.induction.project)
    _record_change(metric, by, "accepted")
    return criterion


@transaction.atomic
def edit_metric(*, metric: Metric, name: str, definition: str, by: User | None) -> Metric:
    """The criterion of an accepted metric gets its next version."""
    metric = _lock(metric)
    _require_active(metric)
    metric.name, metric.definition = _check_name(metric.induction, name, metric), definition.strip()
    metric.save(update_fields=["name", "definition"])
    _record_change(metric, by, "edited")
    if metric.state == Metric.State.ACCEPTED:
        accept_metric(metric=metric, by=by)
    else:
        refresh_facts(metric.induction.project)
    return metric


@transaction.atomic
def reject_metric(*, metric: Metric, by: User | None) -> Metric:
    """Its points stay with it for reference; trajectories are judged again without it."""
    metric = _lock(metric)
    _require_active(metric)
    if active_metrics(metric.induction).count() == 1:
        raise DomainError("The only metric left cannot be rejected. Extract metrics again instead.")
    metric.state, metric.criterion = Metric.State.REJECTED, None
    metric.save(update_fields=["state", "criterion"])
    metric.verdicts.all().delete()
    refresh_facts(metric.induction.project)
    _record_change(metric, by, "rejected")
    judge_again(metric.induction)
    return metric


@transaction.atomic
def restore_metric(*, metric: Metric, by: User | None) -> Metric:
    """Undo a rejection."""
    metric = _lock(metric)
    if metric.state != Metric.State.REJECTED:
        raise DomainError("Only a rejected metric can be restored.")
    if not metric.aspects.exists():
        raise DomainError("The metric cannot be restored, because all its points were deleted.")
    metric.state = Metric.State.PROPOSED
    metric.save(update_fields=["state"])
    _record_change(metric, by, "restored")
    judge_again(metric.induction)
    return metric


@transaction.atomic
def merge_metrics(*, metric: Metric, into: Metric, by: User | None) -> Metric:
    """Move all points of the first to the other, and judge trajectories again. Returns the other."""
    metric, into = _lock(metric), _lock(into)
    if metric.pk == into.pk or metric.induction_id != into.induction_id:
        raise DomainError("Choose another metric of the same induction to merge into.", pointer="/into")
    _require_active(metric)
    _require_active(into)
    metric.aspects.update(metric=into, example=None)
    metric.verdicts.all().delete()
    metric.state, metric.merged_into, metric.criterion = Metric.State.MERGED, into, None
    metric.save(update_fields=["state", "merged_into", "criterion"])
    refresh_facts(metric.induction.project)
    _record_change(metric, by, "merged", into=into.pk)
    judge_again(metric.induction)
    return into


@transaction.atomic
def split_metric(*, metric: Metric, aspects: Sequence[int], name: str, by: User | None) -> Metric:
    """Move points, by their keys, to a new metric, and judge trajectories again. Returns the new metric."""
    metric = _lock(metric)
    _require_active(metric)
    points = metric.aspects.all()
    chosen = points.filter(pk__in=aspects)
    # Points with the same text go together: a phrase is in one metric only.
    chosen = points.filter(feedback__in=list(chosen.values_list("feedback", flat=True)))
    if not 0 < chosen.count() < points.count():
        raise DomainError(
            "Choose at least one of the metric's points, and not all of them.", pointer="/aspects"
        )
    induction = metric.induction
    position = 1 + max(induction.metrics.values_list("position", flat=True))
    name = _check_name(induction, name)
    new = Metric.objects.create(induction=induction, position=position, name=name, previous=None)
    Aspect.objects.filter(pk__in=list(chosen.values_list("pk", flat=True))).update(metric=new, example=None)
    _record_change(metric, by, "split", off=new.pk)
    judge_again(induction)
    return new


@transaction.atomic
def create_rubric(*, induction: Induction, name: str, by: User | None) -> Rubric:
    """A rubric of all accepted metrics, those with the most points first."""
    accepted = induction.metrics.filter(state=Metric.State.ACCEPTED, criterion__isnull=False)
    ordered = sorted(accepted.select_related("criterion"), key=lambda metric: -metric.aspects.count())
    if not ordered:
        raise DomainError("Accept a metric first. The rubric is created from accepted metrics.")
    criteria = [metric.criterion for metric in ordered if metric.criterion is not None]
    drafts = [
        CriterionDraft(
            name=criterion.name,
            definition=criterion.definition,
            scale_low=criterion.scale_low,
            scale_high=criterion.scale_high,
            good_example=criterion.good_example,
            bad_example=criterion.bad_example,
        )
        for criterion in criteria
    ]
    about = f"Extracted from comments ({induction})."
    return save_rubric(project=induction.project, name=name, criteria=drafts, about=about, by=by)


def _lock(metric: Metric) -> Metric:
    rows = Metric.objects.select_for_update(no_key=True, of=("self",)).select_related("induction__project")
    return rows.get(pk=metric.pk)


def _require_active(metric: Metric) -> None:
    if metric.state in (Metric.State.REJECTED, Metric.State.MERGED):
        raise DomainError(f"The metric was {metric.state} and can no longer be changed.", status=409)
    if not metric.induction.is_finished:
        raise DomainError(
            "Trajectories are being judged by these metrics. Wait for the end of that, then change the metric.",
            status=409,
        )


def _check_name(induction: Induction, name: str, metric: Metric | None = None) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= 200:
        raise DomainError("The name must have 1 to 200 characters.", pointer="/name")
    same_name = induction.metrics.filter(name=name)
    if metric is not None:
        same_name = same_name.exclude(pk=metric.pk)
    if same_name.exists():
        raise DomainError(f"Another metric of this induction is named “{name}”.", pointer="/name")
    return name


def _record_change(metric: Metric, by: Actor, verb: str, **data: Any) -> None:
    project = metric.induction.project
    record_audit(project=project, actor=by, verb=f"metric.{verb}", target=f"metric {metric.pk}", data=data)
