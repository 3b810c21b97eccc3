"""What a bulk job will take, before it is started: time by what the same engine did before, money by prices."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.services import require_engine
from apps.core.jobs.job_queue import JobState
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.metrics.models import Induction
from apps.rewards.models import Endpoint, EndpointRevision
from apps.semantic_search.selectors import unindexed
from apps.training.models import RewardModel
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterSource
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from workers.schema.pictures import picture_places

_MILLION = 1_000_000
_RUNS = 20  # the newest, of which usage is read
_SAMPLED = 50  # trajectories, whose pictures are counted
# Of a judge that never ran, in tokens: what is around a trajectory in a prompt, and of each criterion its definition
# and the answer.
_PROMPT_TOKENS, _CRITERION_TOKENS, _ANSWER_TOKENS = 400, 100, 120


@dataclass(frozen=True, slots=True)
class BulkEstimate:
    """items, tokens: of the trajectories, the tokens by their size. seconds: of one worker; None where the engine has
    done nothing yet. cost: in the currency of the connection's prices; None where nothing is paid or no price is set.
    basis: what both are taken from, in words."""

    items: int
    tokens: int
    seconds: float | None
    cost: Decimal | None
    basis: str

    @property
    def minutes(self) -> float | None:
        return None if self.seconds is None else self.seconds / 60


def estimate_bulk_job(
    *,
    project: Project,
    work: str,
    filter: FilterSource = None,
    model: RewardModel | None = None,
    judge: Judge | None = None,
    induction: Induction | None = None,
    endpoint: Endpoint | None = None,
) -> BulkEstimate:
    """Raises DomainError as `create_bulk_job` does."""
    require_engine(project, work, model, judge, induction, endpoint)
    rows = filter_trajectories(project, filter).order_by()
    if work == BulkJob.Work.INDEX:
        rows = unindexed(rows)
    found = rows.aggregate(items=Count("pk"), tokens=Sum("token_count", default=0))
    items, tokens = int(found["items"]), int(found["tokens"])
    revision = None if endpoint is None else endpoint.active
    seconds = _seconds_per_token(work, model, judge, induction, revision)
    time_basis = (
        "time by earlier jobs of the same engine"
        if seconds is not None
        else "no time yet: this engine has done no bulk job, and its first chunk will show it"
    )
    cost, cost_basis = (None, "") if judge is None else _judge_cost(judge, rows, items, tokens)
    return BulkEstimate(
        items=items,
        tokens=tokens,
        seconds=None if seconds is None else seconds * tokens,
        cost=cost,
        basis="; ".join(part for part in (time_basis, cost_basis) if part),
    )


def _seconds_per_token(
    work: str,
    model: RewardModel | None,
    judge: Judge | None,
    induction: Induction | None,
    revision: EndpointRevision | None,
) -> float | None:
    """Of one worker, over the chunks of the newest job of the engine that has any."""
    chunks = BulkChunk.objects.filter(
        bulk_job__work=work,
        bulk_job__model=model,
        bulk_job__judge=judge,
        bulk_job__induction=induction,
        bulk_job__revision=revision,
        state=JobState.SUCCEEDED,
        seconds__gt=0,
        token_estimate__gt=0,
    )
    newest = chunks.order_by("-bulk_job_id").values_list("bulk_job_id", flat=True).first()
    if newest is None:
        return None
    found = chunks.filter(bulk_job=newest).aggregate(seconds=Sum("seconds"), tokens=Sum("token_estimate"))
    return float(found["seconds"]) / int(found["tokens"])


def _judge_cost(
    judge: Judge, rows: "QuerySet[Trajectory]", items: int, tokens: int
) -> tuple[Decimal | None, str]:
    connection = judge.llm_connection
    if connection is None or connection.is_local:
        return None, "no money: the language model is on this machine"
    if connection.prompt_price is None and connection.completion_price is None:
        return None, f"no money: {connection} has no prices"
    prompt, completion, basis = _usage_per_item(judge, rows, items, tokens)
    price = prompt * float(connection.prompt_price or 0) + completion * float(
        connection.completion_price or 0
    )
    return Decimal(price * items / _MILLION).quantize(Decimal("0.01")), basis


def _usage_per_item(
    judge: Judge, rows: "QuerySet[Trajectory]", items: int, tokens: int
) -> tuple[float, float, str]:
    """Prompt and completion tokens of an item, and what they are taken from."""
    done = Count("results", filter=Q(results__state=JudgeResult.State.DONE))
    runs = JudgeRun.objects.filter(judge=judge, state=JobState.SUCCEEDED).annotate(done=done)
    prompt = completion = judged = 0
    for run in runs.order_by("-pk")[:_RUNS]:
        usage = run.result.get("usage", {})
        # Answers that were there already cost nothing then, and say nothing of what new ones will.
        share = usage.get("calls", 0) / max(1, usage.get("calls", 0) + usage.get("kept", 0))
        judged += round(run.done * share)
        prompt += usage.get("prompt_tokens", 0)
        completion += usage.get("completion_tokens", 0)
    if judged and prompt:
        return (
            prompt / judged,
            completion / judged,
            f"money by {judged:,} items that this judge scored before",
        )
    criteria = max(1, len(judge.criteria))
    size = tokens / max(1, items) + _PROMPT_TOKENS + _CRITERION_TOKENS * criteria
    size += _picture_tokens(judge, rows)
    return (
        judge.samples * size,
        judge.samples * criteria * _ANSWER_TOKENS,
        ("money by the size of the trajectories, which this judge has not scored yet"),
    )


def _picture_tokens(judge: Judge, rows: "QuerySet[Trajectory]") -> float:
    """Of one question, the mean over the newest trajectories: the most that their pictures can count as."""
    connection = judge.llm_connection
    if connection is None or not connection.reads_pictures:
        return 0.0
    newest = load_trajectories(rows.order_by("-pk").values_list("pk", flat=True)[:_SAMPLED]).values()
    counts = [
        sum(
            part.type == "image"
            for step in trajectory.steps
            for _, parts in picture_places(step)
            for part in parts
        )
        for trajectory in newest
    ]
    shown = [min(count, connection.max_pictures) for count in counts]
    return connection.picture_tokens * sum(shown) / len(shown) if shown else 0.0
