"""What changes inductions and their metrics."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.models import Campaign, Comment
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.llm.models import LLMConnection
from apps.metrics.models import Aspect, Induction, Metric, Verdict
from apps.metrics.selectors import (
    comments_of,
    definition_of,
    examples_of,
    newest_counting,
    newest_induction,
    standing,
)
from apps.rubrics.models import Criterion, Rubric
from apps.rubrics.services import CriterionDraft, save_criterion, save_rubric
from apps.trajectories.models import Trajectory
from apps.trajectories.services import replace_facts

ADVANCE = "apps.metrics.tasks.advance_inductions"
FACT = "metric"
_BATCH = 2000
_LEAST = 1e-6  # of a value, whose sign is the verdict


@transaction.atomic
def induce(
    *,
    project: Project,
    campaign: Campaign | None = None,
    llm_connection: LLMConnection | None = None,
    seed: int = 0,
    by: User | None = None,
) -> Induction:
    """Put an induction into the queue. llm_connection: to be asked, rather than the embedded engine.

    Raises DomainError where there is no comment, or one is under way.
    """
    if not 0 <= seed < 2**31:
        raise DomainError("A seed is a whole number from 0 to 2147483647.", pointer="/seed")
    if not comments_of(project, campaign).exists():
        where = f"in {campaign.name}" if campaign else "in this project"
        raise DomainError(
            f"Nobody has written a comment {where} yet. Ask for comments in a campaign, or import feedback that has "
            "some, then induce."
        )
    before = newest_induction(project, campaign)
    induction = _queued(
        lambda: Induction.objects.create(
            project=project,
            campaign=campaign,
            engine=Induction.Engine.LLM if llm_connection else Induction.Engine.EMBEDDED,
            llm_connection=llm_connection,
            seed=seed,
            before=before,
            created_by=by,
        )
    )
    record_audit(project=project, actor=by, verb="metrics.induced", target=str(induction), data={})
    return induction


def keep_induction(
    induction: Induction,
    result: dict[str, Any],
    aspects: Sequence[dict[str, Any]],
    traits: Sequence[dict[str, Any]],
) -> None:
    """The end of an induction that went well. Raises ClaimLost."""
    with job_queue.fenced(induction):
        before = {str(one.pk): one for one in induction.before.metrics.all()} if induction.before else {}
        metrics, names = [], set[str]()
        for position, one in enumerate(result["metrics"]):
            known = before.get((one["before"] or {}).get("id", ""))
            # What people made of it last time stays: its name and its definition.
            name = known.name if known and known.name not in names else one["name"]
            while name in names:
                name += " (new)"
            names.add(name)
            metrics.append(
                Metric(
                    induction=induction,
                    position=position,
                    name=name[:200],
                    definition=known.definition if known and known.definition else one.get("definition", ""),
                    before=known,
                )
            )
        Metric.objects.bulk_create(metrics)
        _write_aspects(induction, metrics, aspects)
        _write_verdicts(induction, metrics, traits)
        refresh_facts(induction.project)
        job_queue.finish(induction, job_queue.JobState.SUCCEEDED, result=_figures(result), progress={})


def keep_judging(
    induction: Induction,
    metrics: Sequence[Metric],
    result: dict[str, Any],
    aspects: Sequence[dict[str, Any]],
    traits: Sequence[dict[str, Any]],
) -> None:
    """The end of a judging by metrics that people changed: what was held out tells nothing of them any more."""
    with job_queue.fenced(induction):
        there = {one.pk for one in standing(induction)}
        if there != {one.pk for one in metrics}:  # changed meanwhile; it is judged once more
            job_queue.release(induction)
            return
        kept = {
            one.pk: list(one.aspects.values_list("comment_id", "feedback", "number"))
            for one in Metric.objects.filter(induction=induction).exclude(pk__in=there)
        }
        Aspect.objects.filter(induction=induction).delete()
        numbers = _write_aspects(induction, metrics, aspects)
        for pk, keys in kept.items():  # what a rejected metric was made of stays with it
            mine = [numbers[key[:2]] for key in keys if key[:2] in numbers]
            Aspect.objects.filter(induction=induction, number__in=mine, metric=None).update(metric=pk)
        Verdict.objects.filter(metric__induction=induction).delete()
        _write_verdicts(induction, metrics, traits)
        refresh_facts(induction.project)
        told = induction.result | _figures(result) | {"changed": True}
        job_queue.finish(induction, job_queue.JobState.SUCCEEDED, result=told, progress={})


@transaction.atomic
def accept(*, metric: Metric, by: User | None) -> Criterion:
    """Make it a criterion, of the origin `induced`, from 1 to 5: the newest version under its name."""
    metric = _locked(metric)
    _require_standing(metric)
    good, bad = examples_of(metric, 1), examples_of(metric, -1)
    draft = CriterionDraft(
        name=metric.name,
        definition=definition_of(metric),
        good_example="\n".join(good[:3]),
        bad_example="\n".join(bad[:3]),
    )
    criterion = save_criterion(project=metric.induction.project, draft=draft, origin=Criterion.Origin.INDUCED)
    metric.criterion, metric.state = criterion, Metric.State.ACCEPTED
    metric.save(update_fields=["criterion", "state"])
    refresh_facts(metric.induction.project)
    _record(metric, by, "accepted")
    return criterion


@transaction.atomic
def edit(*, metric: Metric, name: str, definition: str, by: User | None) -> Metric:
    """An accepted metric's criterion gets its next version."""
    metric = _locked(metric)
    _require_standing(metric)
    metric.name, metric.definition = _checked_name(metric.induction, name, metric), definition.strip()
    metric.save(update_fields=["name", "definition"])
    _record(metric, by, "edited")
    if metric.state == Metric.State.ACCEPTED:
        accept(metric=metric, by=by)
    else:
        refresh_facts(metric.induction.project)
    return metric


@transaction.atomic
def reject(*, metric: Metric, by: User | None) -> Metric:
    """Its points stay with it, to be looked at; the others are judged again without it."""
    metric = _locked(metric)
    _require_standing(metric)
    if standing(metric.induction).count() == 1:
        raise DomainError("It is the only metric left; induce anew rather than rejecting it.")
    metric.state, metric.criterion = Metric.State.REJECTED, None
    metric.save(update_fields=["state", "criterion"])
    metric.verdicts.all().delete()
    refresh_facts(metric.induction.project)
    _record(metric, by, "rejected")
    judge_again(metric.induction)
    return metric


@transaction.atomic
def restore(*, metric: Metric, by: User | None) -> Metric:
    """Take a rejection back."""
    metric = _locked(metric)
    if metric.state != Metric.State.REJECTED:
        raise DomainError("It was not rejected.")
    if not metric.aspects.exists():
        raise DomainError("Nothing it was made of is there any more.")
    metric.state = Metric.State.PROPOSED
    metric.save(update_fields=["state"])
    _record(metric, by, "restored")
    judge_again(metric.induction)
    return metric


@transaction.atomic
def merge(*, metric: Metric, into: Metric, by: User | None) -> Metric:
    """All points of the first go to the other, which is judged anew. Returns the other."""
    metric, into = _locked(metric), _locked(into)
    if metric.pk == into.pk or metric.induction_id != into.induction_id:
        raise DomainError("Merge it with another metric of the same induction.", pointer="/into")
    _require_standing(metric)
    _require_standing(into)
    metric.aspects.update(metric=into, example=None)
    metric.verdicts.all().delete()
    metric.state, metric.merged_into, metric.criterion = Metric.State.MERGED, into, None
    metric.save(update_fields=["state", "merged_into", "criterion"])
    refresh_facts(metric.induction.project)
    _record(metric, by, "merged", into=into.pk)
    judge_again(metric.induction)
    return into


@transaction.atomic
def split(*, metric: Metric, aspects: Sequence[int], name: str, by: User | None) -> Metric:
    """Points, by their keys, become a metric of their own; both are judged anew. Returns the new one."""
    metric = _locked(metric)
    _require_standing(metric)
    mine = metric.aspects.all()
    chosen = mine.filter(pk__in=aspects)
    # Whoever says the same goes along: a phrase is in one metric only.
    chosen = mine.filter(feedback__in=list(chosen.values_list("feedback", flat=True)))
    if not 0 < chosen.count() < mine.count():
        raise DomainError("Choose some of its points, not none and not all.", pointer="/aspects")
    induction = metric.induction
    position = 1 + max(induction.metrics.values_list("position", flat=True))
    new = Metric.objects.create(
        induction=induction, position=position, name=_checked_name(induction, name), before=None
    )
    Aspect.objects.filter(pk__in=list(chosen.values_list("pk", flat=True))).update(metric=new, example=None)
    _record(metric, by, "split", off=new.pk)
    judge_again(induction)
    return new


def judge_again(induction: Induction) -> None:
    """Have every trajectory judged by the metrics as they are now; nothing where that waits already."""
    if not induction.is_finished:
        return
    if not standing(induction).exists():
        raise DomainError("There is no metric to judge by.")

    def queue() -> Induction:
        job_queue.requeue(induction, even_done=True)
        return induction

    _queued(queue)


@transaction.atomic
def make_rubric(*, induction: Induction, name: str, by: User | None) -> Rubric:
    """A rubric of everything that was accepted, the most spoken of first."""
    accepted = induction.metrics.filter(state=Metric.State.ACCEPTED, criterion__isnull=False)
    counted = sorted(accepted.select_related("criterion"), key=lambda one: -one.aspects.count())
    if not counted:
        raise DomainError("Accept a metric first; a rubric is made of those.")
    drafts = [
        CriterionDraft(
            name=one.criterion.name,
            definition=one.criterion.definition,
            scale_low=one.criterion.scale_low,
            scale_high=one.criterion.scale_high,
            good_example=one.criterion.good_example,
            bad_example=one.criterion.bad_example,
        )
        for one in counted
        if one.criterion is not None
    ]
    about = f"Induced from what people wrote ({induction})."
    return save_rubric(project=induction.project, name=name, criteria=drafts, about=about, by=by)


@transaction.atomic
def refresh_facts(project: Project) -> None:
    """Have the explorer know what the metrics that count say of each trajectory: see `selectors.counting`."""
    rows = Verdict.objects.filter(metric__in=newest_counting(project)).exclude(sign=0)
    there = _there(Trajectory.objects.all(), set(rows.values_list("trajectory", flat=True)))
    told = rows.values_list("trajectory", "metric__name", "sign", "value").order_by("pk")
    replace_facts(
        project=project,
        kind=FACT,
        facts=(
            (key, name, sign * max(abs(value), _LEAST)) for key, name, sign, value in told if key in there
        ),
    )


def _queued(make: Any) -> Induction:
    try:
        with transaction.atomic():
            induction: Induction = make()
    except IntegrityError:
        raise DomainError(
            "An induction of this project is under way; wait for its end, or cancel it."
        ) from None
    job_queue.nudge_on_commit(ADVANCE)
    return induction


def _write_aspects(
    induction: Induction, metrics: Sequence[Metric], lines: Sequence[dict[str, Any]]
) -> dict[tuple[int, str], int]:
    """By comment and point, its number. What was deleted while it was induced is left out."""
    comments = _there(Comment.objects.all(), {int(line["comment"]) for line in lines})
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
    Aspect.objects.bulk_create(rows, batch_size=_BATCH)
    return {(row.comment_id, row.feedback): row.number for row in rows}


def _write_verdicts(induction: Induction, metrics: Sequence[Metric], lines: Sequence[dict[str, Any]]) -> None:
    runs = _there(Trajectory.objects.all(), {int(line["trajectory"]) for line in lines})
    aspects = dict(Aspect.objects.filter(induction=induction).values_list("number", "pk"))
    Verdict.objects.bulk_create(
        (
            Verdict(
                metric=metrics[line["metric"]],
                trajectory_id=int(line["trajectory"]),
                sign=line["sign"],
                value=line["value"],
                step=line["step"],
                because_id=aspects.get(line["because"]),
                reason=line["reason"],
            )
            for line in lines
            if int(line["trajectory"]) in runs
        ),
        batch_size=_BATCH,
    )


def _there(rows: Any, keys: set[int]) -> set[int]:
    """Locked against deletion until the transaction ends."""
    return set(
        rows.filter(pk__in=keys).select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True)
    )


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    """Without people's words: those are in rows that go with their comments."""
    return {name: value for name, value in result.items() if name != "metrics"} | {
        "metrics": len(result["metrics"])
    }


def _locked(metric: Metric) -> Metric:
    rows = Metric.objects.select_for_update(no_key=True, of=("self",)).select_related("induction__project")
    return rows.get(pk=metric.pk)


def _require_standing(metric: Metric) -> None:
    if metric.state in (Metric.State.REJECTED, Metric.State.MERGED):
        raise DomainError(f"It was {metric.state}; nothing more is done to it.", status=409)
    if not metric.induction.is_finished:
        raise DomainError(
            "Its trajectories are being judged; wait for the end of that, then change it.", status=409
        )


def _checked_name(induction: Induction, name: str, metric: Metric | None = None) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= 200:
        raise DomainError("The name of a metric has 1 to 200 characters.", pointer="/name")
    others = induction.metrics.filter(name=name)
    if metric is not None:
        others = others.exclude(pk=metric.pk)
    if others.exists():
        raise DomainError(f"Another metric of this induction is called “{name}”.", pointer="/name")
    return name


def _record(metric: Metric, by: User | None, verb: str, **data: Any) -> None:
    project = metric.induction.project
    record_audit(project=project, actor=by, verb=f"metric.{verb}", target=f"metric {metric.pk}", data=data)
