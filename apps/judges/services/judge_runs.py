"""Judgings begin, get their answers, and become judgements of a campaign."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.models import (
    Assignment,
    Campaign,
    Comment,
    CriterionScore,
    FeedbackRecord,
    Item,
    Preference,
)
from apps.annotation.services.machines import write_as_judge
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.selectors import TRIED
from apps.judges.services.judges import check_prompt
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from apps.trajectories.services import replace_facts

ADVANCE = "apps.judges.tasks.advance_judge_runs"
MOST_UNITS = 200_000  # of a judge run
CLEAR = 0.1  # how far from a half a chance is no tie
SURE = 0.9  # from which chance on a run is "better" rather than "slightly better"
_BATCH = 500
_LONGEST_NAME = 200  # of a fact


@transaction.atomic
def start_judge_run(
    *,
    judge: Judge,
    campaign: Campaign,
    prompt: int | None = None,
    max_items: int | None = None,
    saves_annotations: bool = False,
    by: User | None = None,
) -> JudgeRun:
    """Have a judge go through a campaign's work, what people judged first.

    prompt: a version; None for that of the judge. saves_annotations: whether the results become annotations at the end.
    Raises DomainError where there is nothing for it, or nobody to ask.
    """
    judge_run = _new(judge, campaign, prompt, max_items, by)
    judge_run.saves_annotations = saves_annotations
    if campaign.project_id != judge.project_id:
        raise DomainError("A judge goes through campaigns of its own project.", status=404)
    units = list(islice(_units_of(judge, campaign, max_items), MOST_UNITS + 1))
    if not units:
        wanted = "runs" if judge.mode == Judge.Mode.SCORE else "items of two runs"
        raise DomainError(f"{campaign.name} has no {wanted} to judge; add some first.")
    if len(units) > MOST_UNITS:
        raise DomainError(
            f"A judge run is of at most {MOST_UNITS:,} runs; say how many at most.", pointer="/max_items"
        )
    return _begin(judge_run, units)


@transaction.atomic
def try_judge(
    *, judge: Judge, runs: Sequence[Trajectory], prompt: int | None = None, by: User | None = None
) -> JudgeRun:
    """Have it judge up to three runs, or, where it compares, each with the next one of the same task."""
    judge_run = _new(judge, None, prompt, None, by)
    if any(run.project_id != judge.project_id for run in runs):
        raise DomainError("A judge is tried on runs of its own project.", status=404)
    if judge.mode == Judge.Mode.SCORE:
        units = [JudgeResult(trajectory=run) for run in runs[:TRIED]]
    else:
        units = [
            JudgeResult(trajectory=a, other_trajectory=b) for a, b in pairwise(runs) if a.task_id == b.task_id
        ][:TRIED]
    if not units:
        raise DomainError(
            "There is nothing to try it on: choose runs"
            + (", two of one task at least." if judge.mode == Judge.Mode.COMPARE else ".")
        )
    return _begin(judge_run, units)


def store_results(judge_run: JudgeRun, lines: Iterable[Mapping[str, Any]]) -> int:
    """What came of units, as `workers.judge.run` writes it; how many. Raises ClaimLost."""
    kept = list(lines)
    with job_queue.fenced(judge_run):
        rows = {row.pk: row for row in judge_run.results.filter(pk__in=[line["unit"] for line in kept])}
        for line in kept:
            row = rows.get(line["unit"])
            if row is None:  # what it was about is gone
                continue
            row.answer, row.problem = line.get("answer"), line.get("problem", "")
            row.state = JudgeResult.State.FAILED if row.problem else JudgeResult.State.DONE
        JudgeResult.objects.bulk_update(rows.values(), ["answer", "problem", "state"], batch_size=_BATCH)
    return len(kept)


@transaction.atomic
def retry_failed(*, judge_run: JudgeRun) -> None:
    """Ask again for what has no answer. Raises Conflict where everything has, or it is under way."""
    judge_run = JudgeRun.objects.select_for_update().get(pk=judge_run.pk)
    if not judge_run.is_finished:
        raise Conflict("It is still under way.")
    _require_model(judge_run.judge)
    if not judge_run.results.exclude(state=JudgeResult.State.DONE).exists():
        raise Conflict("Everything has an answer.")
    judge_run.results.filter(state=JudgeResult.State.FAILED).update(
        state=JudgeResult.State.WAITING, problem=""
    )
    job_queue.requeue(judge_run, even_done=True)
    job_queue.nudge_on_commit(ADVANCE)


@transaction.atomic
def save_as_annotations(*, judge_run: JudgeRun, by: User | None) -> None:
    """Have a worker make its answers judgements of the campaign. Raises Conflict where there are none."""
    judge_run = (
        JudgeRun.objects.select_for_update(of=("self",))
        .select_related("judge__project", "campaign")
        .get(pk=judge_run.pk)
    )
    if judge_run.campaign is None:
        raise Conflict("A trial is about no campaign, so there is nowhere to hand it in.")
    if not judge_run.is_finished:
        raise Conflict("It is still under way.")
    if not judge_run.results.filter(state=JudgeResult.State.DONE).exists():
        raise Conflict("There is no answer to hand in.")
    JudgeRun.objects.filter(pk=judge_run.pk).update(saves_annotations=True)
    job_queue.requeue(judge_run, even_done=True)
    job_queue.nudge_on_commit(ADVANCE)
    record_audit(
        project=judge_run.judge.project, actor=by, verb="judging.handed_in", target=str(judge_run),
        data={"campaign": judge_run.campaign.name, "judge": judge_run.judge.name},
    )  # fmt: skip


def write_annotations(judge_run: JudgeRun, check: Callable[[], None]) -> None:
    """Its answers as judgements, under the judge's own name and of the origin `judge`.

    They take nobody's place, and count for nothing that is about people. Handed in again, they are a new revision where
    they say something else. check: called now and then. Raises ClaimLost.
    """
    judge, asks = judge_run.judge, judge_run.judge.criteria
    rows = judge_run.results.filter(state=JudgeResult.State.DONE, item__isnull=False).order_by("item", "pk")
    by_item = _by_item(rows.iterator(chunk_size=_BATCH))
    while some := list(islice(by_item, _BATCH)):
        check()
        with job_queue.fenced(judge_run):
            for item, judged in some:
                said = [row for one in judged for row in _judgements(judge.mode, asks, one)]
                if said:
                    write_as_judge(project=judge.project, name=judge.annotator_name, item=item, rows=said)


def update_trajectory_facts(judge_run: JudgeRun) -> None:
    """Have the explorer know what this judge run says of each run by each criterion; of this judge, nothing else."""
    judge, asks = judge_run.judge, judge_run.judge.criteria
    if judge_run.is_test or judge.mode != Judge.Mode.SCORE:
        return
    with job_queue.fenced(judge_run):
        rows = judge_run.results.filter(state=JudgeResult.State.DONE)
        runs = Trajectory.objects.filter(judge_results__in=rows).order_by("pk")
        there = set(runs.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
        told = {
            (run, f"{judge.name}: {criterion.name}"[:_LONGEST_NAME]): _goodness(criterion, said["value"])
            for run, answer in rows.order_by("pk").values_list("trajectory", "answer")
            for criterion, said in zip(asks, answer or (), strict=True)
            if run in there and criterion is not None and said["value"] is not None
        }
        facts = ((run, name, value) for (run, name), value in told.items())
        replace_facts(project=judge.project, kind=judge.fact_kind, facts=facts)


def _goodness(criterion: Criterion, value: float) -> float:
    """From -1 to 1; 0 in the middle of the scale."""
    return 2 * (value - criterion.scale_low) / (criterion.scale_high - criterion.scale_low) - 1


def _new(
    judge: Judge, campaign: Campaign | None, prompt: int | None, max_items: int | None, by: User | None
) -> JudgeRun:
    _require_model(judge)
    prompt = judge.prompt if prompt is None else prompt
    check_prompt(prompt)
    if max_items is not None and max_items < 1:
        raise DomainError("max_items must be 1 or more; leave it empty for all items.", pointer="/max_items")
    return JudgeRun(judge=judge, campaign=campaign, prompt=prompt, max_items=max_items, created_by=by)


def _require_model(judge: Judge) -> None:
    if judge.llm_connection is None:
        raise DomainError(
            f"The language model of {judge.name} was removed, so there is nobody to ask. Make a judge with another."
        )


def _begin(judge_run: JudgeRun, units: Sequence[JudgeResult]) -> JudgeRun:
    judge_run.progress = {"done": 0, "total": len(units), "note": "Waiting for a worker"}
    judge_run.save()
    for unit in units:
        unit.judge_run = judge_run
    JudgeResult.objects.bulk_create(units, batch_size=_BATCH)
    job_queue.nudge_on_commit(ADVANCE)
    return judge_run


def _units_of(judge: Judge, campaign: Campaign, max_items: int | None) -> Iterator[JudgeResult]:
    said = Assignment.objects.filter(item=OuterRef("pk"), state=Assignment.State.SUBMITTED)
    items = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK).annotate(is_judged=Exists(said))
    items = items.order_by("-is_judged", "random_key", "pk").prefetch_related("places__trajectory")
    rows: Any = items[:max_items] if max_items is not None else items
    for item in rows.iterator(chunk_size=_BATCH):
        runs = [place.trajectory for place in item.places.all()]
        if judge.mode == Judge.Mode.SCORE:
            for run in runs:
                yield JudgeResult(item=item, trajectory=run)
        elif len(runs) == 2:
            yield JudgeResult(item=item, trajectory=runs[0], other_trajectory=runs[1])


def _by_item(rows: Iterable[JudgeResult]) -> Iterator[tuple[int, list[JudgeResult]]]:
    item, found = 0, list[JudgeResult]()
    for row in rows:
        assert row.item_id is not None
        if row.item_id != item and found:
            yield item, found
            found = []
        item = row.item_id
        found.append(row)
    if found:
        yield item, found


def _judgements(mode: str, asks: Sequence[Criterion | None], judged: JudgeResult) -> Iterator[FeedbackRecord]:
    """What an answer is as judgements: scores with their reasons, or preferences; and each reason at its step."""
    for criterion, said in zip(asks, judged.answer or (), strict=True):
        if mode == Judge.Mode.SCORE:
            assert criterion is not None
            if said["value"] is None:
                continue
            low, high = criterion.scale_low, criterion.scale_high
            value = min(max(round(said["value"], 2), low), high)
            yield CriterionScore(
                trajectory_id=judged.trajectory_id, criterion=criterion, value=value, low=low, high=high,
                note=said["reason"],
            )  # fmt: skip
            middle = (low + high) / 2
            sign = 1 if value > middle else -1 if value < middle else None
            yield from _comment(judged.trajectory_id, said["reason"], said["step"], sign)
        elif said["chance"] is not None:
            chance = said["chance"]
            choice = "tie" if abs(chance - 0.5) <= CLEAR else "a" if chance > 0.5 else "b"
            strength = 2 if max(chance, 1 - chance) >= SURE else 1
            yield Preference(criterion=criterion, choice=choice, strength=strength)
            yield from _comment(judged.trajectory_id, said["reason"], said["step_a"], None)


def _comment(run: int, text: str, step: int | None, sign: int | None) -> Iterator[Comment]:
    if text and step is not None:
        yield Comment(trajectory_id=run, text=text, first_step=step, last_step=step, sign=sign)
