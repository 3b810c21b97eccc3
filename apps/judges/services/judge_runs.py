"""Judge runs are started, receive their results, and are retried."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.accounts.actors import Actor, person_of
from apps.accounts.services import record_audit
from apps.annotation.models import Assignment, Campaign, Item
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.selectors import TEST_SIZE
from apps.judges.services.judges import check_prompt
from apps.trajectories.models import Trajectory

ADVANCE = "apps.judges.tasks.advance_judge_runs"
MOST_RESULTS = 200_000  # of a judge run
_BATCH_SIZE = 500


@transaction.atomic
def start_judge_run(
    *,
    judge: Judge,
    campaign: Campaign,
    prompt: int | None = None,
    max_items: int | None = None,
    saves_annotations: bool = False,
    by: Actor = None,
) -> JudgeRun:
    """Queue a run over a campaign's items, those that annotators answered first.

    prompt: a version; None for the judge's own. saves_annotations: whether the results are saved as annotations at the
    end. Raises DomainError where there is nothing to judge, or the judge has no LLM connection.
    """
    judge_run = _new_run(judge, campaign, prompt, max_items, by)
    judge_run.saves_annotations = saves_annotations
    if campaign.project_id != judge.project_id:
        raise DomainError("A judge can only judge campaigns of its project.", status=404)
    results = list(islice(_campaign_results(judge, campaign, max_items), MOST_RESULTS + 1))
    if not results:
        needed = "items with two trajectories" if judge.mode == Judge.Mode.COMPARE else "trajectories"
        raise DomainError(f"{campaign.name} has no {needed} to judge. Add some first.")
    if len(results) > MOST_RESULTS:
        raise DomainError(
            f"A judge run can have at most {MOST_RESULTS:,} trajectories or pairs. Limit the number of items.",
            pointer="/max_items",
        )
    return _queue_run(judge_run, results)


@transaction.atomic
def start_test_run(
    *, judge: Judge, trajectories: Sequence[Trajectory], prompt: int | None = None, by: Actor = None
) -> JudgeRun:
    """Queue a run over up to three trajectories, or, where the judge compares, pairs of neighbours of one task."""
    judge_run = _new_run(judge, None, prompt, None, by)
    if any(trajectory.project_id != judge.project_id for trajectory in trajectories):
        raise DomainError("A judge can only be tested on trajectories of its project.", status=404)
    if judge.mode != Judge.Mode.COMPARE:
        results = [JudgeResult(trajectory=trajectory) for trajectory in trajectories[:TEST_SIZE]]
    else:
        pairs = [(a, b) for a, b in pairwise(trajectories) if a.task_id == b.task_id]
        results = [JudgeResult(trajectory=a, other_trajectory=b) for a, b in pairs[:TEST_SIZE]]
    if not results:
        needed = "at least two of one task" if judge.mode == Judge.Mode.COMPARE else "at least one"
        raise DomainError(f"There are no trajectories to test the judge on. Choose {needed}.")
    return _queue_run(judge_run, results)


def store_results(judge_run: JudgeRun, lines: Iterable[Mapping[str, Any]]) -> int:
    """Store lines of `judged.jsonl` as `workers.judge` writes them; return how many. Raises ClaimLost."""
    read = list(lines)
    with job_queue.fenced(judge_run):
        rows = {row.pk: row for row in judge_run.results.filter(pk__in=[line["unit"] for line in read])}
        for line in read:
            row = rows.get(line["unit"])
            if row is None:  # its trajectory was deleted
                continue
            row.answer, row.problem = line.get("answer"), line.get("problem", "")
            row.written_rubric = line.get("rubric", [])
            row.pictures = line.get("pictures", {})
            row.state = JudgeResult.State.FAILED if row.problem else JudgeResult.State.DONE
        fields = ["answer", "written_rubric", "pictures", "problem", "state"]
        JudgeResult.objects.bulk_update(rows.values(), fields, batch_size=_BATCH_SIZE)
    return len(read)


@transaction.atomic
def retry_failed(*, judge_run: JudgeRun) -> None:
    """Ask again for results without an answer. Raises Conflict where there are none, or the run has not finished."""
    locked = JudgeRun.objects.select_for_update().get(pk=judge_run.pk)
    if not locked.is_finished:
        raise Conflict("The judge run is still running. Wait for its end, or cancel it.")
    _require_connection(locked.judge)
    if not locked.results.exclude(state=JudgeResult.State.DONE).exists():
        raise Conflict("Every result has an answer, so there is nothing to retry.")
    failed = locked.results.filter(state=JudgeResult.State.FAILED)
    failed.update(state=JudgeResult.State.WAITING, problem="")
    job_queue.requeue(locked, even_done=True)
    job_queue.nudge_on_commit(ADVANCE)


@transaction.atomic
def save_as_annotations(*, judge_run: JudgeRun, by: Actor) -> None:
    """Have a worker save the results as annotations of the campaign. Raises Conflict where there are none."""
    locked = (
        JudgeRun.objects.select_for_update(of=("self",))
        .select_related("judge__project", "campaign")
        .get(pk=judge_run.pk)
    )
    if locked.campaign is None:
        raise Conflict("A test run belongs to no campaign, so its results cannot be saved as annotations.")
    if not locked.is_finished:
        raise Conflict("The judge run is still running. Wait for its end, or cancel it.")
    if not locked.results.filter(state=JudgeResult.State.DONE).exists():
        raise Conflict("The judge run has no answers to save.")
    JudgeRun.objects.filter(pk=locked.pk).update(saves_annotations=True)
    job_queue.requeue(locked, even_done=True)
    job_queue.nudge_on_commit(ADVANCE)
    record_audit(
        project=locked.judge.project,
        actor=by,
        verb="judging.handed_in",
        target=str(locked),
        data={"campaign": locked.campaign.name, "judge": locked.judge.name},
    )


def _new_run(
    judge: Judge, campaign: Campaign | None, prompt: int | None, max_items: int | None, by: Actor
) -> JudgeRun:
    _require_connection(judge)
    prompt = judge.prompt if prompt is None else prompt
    check_prompt(prompt, judge.mode, judge.approach)
    if max_items is not None and max_items < 1:
        raise DomainError(
            "The number of items must be 1 or more. Leave it empty for all items.", pointer="/max_items"
        )
    return JudgeRun(
        judge=judge, campaign=campaign, prompt=prompt, max_items=max_items, created_by=person_of(by)
    )


def _require_connection(judge: Judge) -> None:
    if judge.llm_connection is None:
        raise DomainError(
            f"The LLM connection of {judge.name} was deleted. Create a judge with another connection."
        )


def _queue_run(judge_run: JudgeRun, results: Sequence[JudgeResult]) -> JudgeRun:
    judge_run.progress = {"done": 0, "total": len(results)}
    judge_run.save()
    for result in results:
        result.judge_run = judge_run
    JudgeResult.objects.bulk_create(results, batch_size=_BATCH_SIZE)
    job_queue.nudge_on_commit(ADVANCE)
    return judge_run


def _campaign_results(judge: Judge, campaign: Campaign, max_items: int | None) -> Iterator[JudgeResult]:
    """A result without an answer for each trajectory, or pair, of the campaign's work items."""
    submitted = Assignment.objects.filter(item=OuterRef("pk"), state=Assignment.State.SUBMITTED)
    work = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK)
    items = work.annotate(is_annotated=Exists(submitted)).order_by("-is_annotated", "random_key", "pk")
    rows: Any = items.prefetch_related("places__trajectory")
    if max_items is not None:
        rows = rows[:max_items]
    for item in rows.iterator(chunk_size=_BATCH_SIZE):
        trajectories = [place.trajectory for place in item.places.all()]
        if judge.mode != Judge.Mode.COMPARE:
            for trajectory in trajectories:
                yield JudgeResult(item=item, trajectory=trajectory)
        elif len(trajectories) == 2:
            yield JudgeResult(item=item, trajectory=trajectories[0], other_trajectory=trajectories[1])
