"""Judges of an endpoint's spec: asked about each trajectory, in their own threads, within the limits of their LLM.

Without a reply the request is an error, never a guess; the replies to its other items are cached, so
that a retry pays only for what failed. Two requests that ask the same at the same time share one reply.
"""

import asyncio
import hashlib
import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db import Error, connections

from apps.core.errors import DomainError
from apps.judges.executor import criterion_config
from apps.judges.models import Judge
from apps.llm.calls import record_local_usage
from apps.llm.models import SpendingPurpose
from apps.rewards.serving.judge_cache import JudgeCache
from apps.rewards.serving.judge_errors import SOON, judge_error
from apps.rewards.serving.language_models import LanguageModels
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.thread_pools import OwnerPools
from workers.engine import Ask, Opinion, Overloaded, PicturesSeen
from workers.errors import InvalidRecord, RewardError
from workers.schema import Trajectory
from workers.schema.components import JudgePart

CONCURRENT_CALLS = 8  # trajectories, for each LLM connection
MOST_WAITING = 4000  # trajectories, for each LLM connection
LOOKING_UP = 2  # threads


@dataclass(frozen=True, slots=True)
class _JudgeState:
    """A judge as it is now. names, weights: of its criteria."""

    judge: Judge
    criteria: tuple[dict[str, Any], ...]
    weights: tuple[float, ...]


# By criterion or agent step, as `_opinion` takes it, and what of the pictures was shown.
_Scored = tuple[list[Any], PicturesSeen]


@dataclass(eq=False, slots=True)
class _InProgress:
    """Requests to judges in progress, by their content."""

    answers: dict[bytes, "Future[_Scored]"] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Judges:
    """Called on the event loop."""

    def __init__(self, kept_bytes: int) -> None:
        self._models = LanguageModels(JudgeCache(kept_bytes))
        self._in_progress = _InProgress()
        self._pools = OwnerPools[int]("touchstone-judge", CONCURRENT_CALLS)  # by language model
        self._looking_up = ThreadPoolExecutor(LOOKING_UP, thread_name_prefix="touchstone-judges")

    def asker(self, judges: Mapping[str, int], project: str) -> Ask:
        """The function that asks the judges of a revision. judges: their keys, by name."""
        return partial(self._ask, judges, project)

    async def _ask(
        self, judges: Mapping[str, int], project: str, part: JudgePart, runs: Sequence[Trajectory]
    ) -> list[Opinion]:
        """Raises Problem 503 where the judge cannot be called or does not respond, 502 for an invalid reply, and
        Overloaded."""
        loop = asyncio.get_running_loop()
        key = judges.get(part.judge)
        asked = await loop.run_in_executor(self._looking_up, _look_up, key, project, part)
        assert asked.judge.llm_connection_id is not None
        pool = self._pools.get(asked.judge.llm_connection_id)
        if pool.waiting >= MOST_WAITING:
            raise Overloaded(
                f"{pool.waiting} trajectories are waiting for the LLM connection of the judge {part.judge}; the limit "
                f"is {MOST_WAITING}. Try again in {SOON} s, with fewer items.",
                retry_after=SOON,
            )
        with pool.holding(len(runs)):
            futures = [pool.threads.submit(self._opinion, asked, part, run) for run in runs]
            try:
                return await asyncio.gather(*map(asyncio.wrap_future, futures))
            finally:
                for future in futures:
                    future.cancel()

    def close(self) -> None:
        self._looking_up.shutdown(wait=False, cancel_futures=True)
        self._pools.close()
        self._models.close()

    def _opinion(self, asked: _JudgeState, part: JudgePart, run: Trajectory) -> Opinion:
        scored, pictures = self._scored(asked, part, run)
        opinion = _opinion(asked, part, scored)
        critique = "\n".join(line for line in (opinion.critique, pictures.words) if line)
        return replace(opinion, critique=critique, pictures=pictures)

    def _scored(self, asked: _JudgeState, part: JudgePart, run: Trajectory) -> _Scored:
        """Waits for a request in progress with the same content."""
        key, in_progress = _key(asked.judge, part, run), self._in_progress
        with in_progress.lock:
            other = in_progress.answers.get(key)
            if other is None:
                mine = in_progress.answers[key] = Future()
        if other is not None:
            return other.result()
        try:
            found = self._score(asked, part, run)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(found)
            return found
        finally:
            with in_progress.lock:
                del in_progress.answers[key]

    def _score(self, asked: _JudgeState, part: JudgePart, run: Trajectory) -> _Scored:
        from workers.judge.attribution import attribute
        from workers.judge.rubric import Criterion, RubricJudge
        from workers.judge.rubric_first import RubricFirstJudge
        from workers.judge.windows import step_judge_of

        judge, row = asked.judge, asked.judge.llm_connection
        assert row is not None
        try:
            model = self._models.get(row, part.timeout_seconds)
            criteria = [Criterion(**criterion) for criterion in asked.criteria]
            options: dict[str, Any] = {
                "version": judge.prompt, "samples": judge.samples, "guidelines": judge.guidelines,
            }  # fmt: skip
            try:
                if judge.mode == Judge.Mode.STEPS:
                    labels = step_judge_of(model, criteria, window=judge.window, **options)
                    return list(labels.label(run)), _pictures_seen(labels, run)
                kind = RubricFirstJudge if judge.approach == Judge.Approach.RUBRIC_FIRST else RubricJudge
                rubric = kind(model, criteria, **options)
                scores, seen = list(rubric.score(run)), _pictures_seen(rubric, run)
                if not part.attribute:
                    return scores, seen
                shares = attribute(model, criteria, run, speakers=part.speakers)
                return [*zip(scores, shares, strict=True)], seen
            finally:
                if row.is_local and model.usage.calls:
                    usage = {name: getattr(model.usage, name) for name in _COUNTED}
                    record_local_usage(row, usage, SpendingPurpose.ENDPOINTS)
        except InvalidRecord as error:  # a damaged picture: the caller's
            raise Problem(f"The judge {judge.name} cannot be asked: {error.message}", status=422) from error
        except (RewardError, DomainError, Error) as error:
            raise judge_error(error, judge=judge.name, llm_connection=row.name) from error
        finally:
            connections.close_all()


_COUNTED = ("calls", "prompt_tokens", "completion_tokens")


def _look_up(key: int | None, project: str, part: JudgePart) -> _JudgeState:
    """For a thread: it returns its connection. Raises Problem 503 where the judge cannot be called."""
    try:
        rows = Judge.objects.select_related("llm_connection", "rubric")
        mode = Judge.Mode.STEPS if part.each_step else Judge.Mode.SCORE
        judge = rows.filter(pk=key or 0, project__slug=project, mode=mode).first()
        if judge is None or (judge.rubric is None and mode == Judge.Mode.SCORE):
            raise Problem(
                f"The judge {part.judge} was deleted; without it there is no reward. Deploy a revision without it.",
                status=503,
            )
        if judge.llm_connection is None:
            raise Problem(
                f"The LLM connection of the judge {part.judge} was deleted. Create a judge "
                "with another one, and deploy a revision with that judge.",
                status=503,
            )
        entries = list(judge.rubric.entries.select_related("criterion")) if judge.rubric else []
        return _JudgeState(
            judge,
            tuple(criterion_config(entry.criterion, judge.mode) for entry in entries),
            tuple(entry.weight for entry in entries),
        )
    except Error as error:
        raise judge_error(error, judge=part.judge, llm_connection="") from error
    finally:
        connections.close_all()


def _pictures_seen(judge: Any, run: Trajectory) -> PicturesSeen:
    """judge: of `workers.judge`."""
    from workers.prompts.pictures import list_pictures

    return PicturesSeen(judge.count_pictures(run), len(list_pictures(run)))


def _key(judge: Judge, part: JudgePart, run: Trajectory) -> bytes:
    from workers.prompts.pictures import list_pictures
    from workers.prompts.trajectory_text import shown

    row = judge.llm_connection
    assert row is not None
    attributed = f"{sorted(part.speakers)}\0" if part.attribute else ""
    asked = f"{attributed}{judge.pk}\0{row.pk}\0{row.base_url}\0{row.model}\0{row.folder}\0{shown(run)}"
    key = hashlib.sha256(asked.encode(errors="surrogatepass"))
    if row.reads_pictures:
        for place in list_pictures(run):
            key.update(f"\0{place.step}\0{place.source}".encode(errors="surrogatepass"))
    return key.digest()


def _opinion(asked: _JudgeState, part: JudgePart, scored: Sequence[Any]) -> Opinion:
    """scored: `workers.judge.aggregation.CriterionScore`, by criterion.

    Criteria that do not apply are left out of the mean. One with a weight below 0 is better the lower its score. Of a
    judge of steps, `workers.judge.steps.StepVerdict`, by agent step. Of a part that attributes the score, each with its
    `workers.judge.attribution.StepShares`.
    """
    if part.each_step:
        return _opinion_of_steps(part, scored)
    pairs = scored if part.attribute else [(score, None) for score in scored]
    rows = [
        (criterion, weight, score, attribution)
        for criterion, weight, (score, attribution) in zip(asked.criteria, asked.weights, pairs, strict=True)
        if part.criterion in (None, criterion["name"])
    ]
    known = [
        (1.0 if part.criterion is not None else weight, _place(criterion, score.value), attribution)
        for criterion, weight, score, attribution in rows
        if score.value is not None
    ]
    total = math.fsum(abs(weight) for weight, _, _ in known)
    better = [(abs(weight), place if weight > 0 else 1 - place, found) for weight, place, found in known]
    value = math.fsum(weight * place for weight, place, _ in better) / total if total else None
    words = [_in_words(criterion, score, attribution) for criterion, _, score, attribution in rows]
    return Opinion(value, "\n".join(words), earned=_earned(better) if part.attribute and total else ())


def _earned(parts: Sequence[tuple[float, float, Any]]) -> tuple[float, ...]:
    from workers.judge.attribution import earned_by_step

    return tuple(earned_by_step([(weight, place, found.shares) for weight, place, found in parts]))


def _opinion_of_steps(part: JudgePart, verdicts: Sequence[Any]) -> Opinion:
    values = [
        verdict.value / math.sqrt(1 + verdict.repeats) if part.shares_repeats else verdict.value
        for verdict in verdicts
    ]
    lines = [f"Step {verdict.step}: {verdict.label}. {verdict.reason}".strip() for verdict in verdicts]
    steps = tuple((verdict.agent_step, value) for verdict, value in zip(verdicts, values, strict=True))
    return Opinion(math.fsum(values) / len(values), "\n".join(lines), passages=steps)


def _place(criterion: Mapping[str, Any], value: float) -> float:
    low, high = criterion["low"], criterion["high"]
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _in_words(criterion: Mapping[str, Any], score: Any, attribution: Any = None) -> str:
    low, high = criterion["low"], criterion["high"]
    value = (
        "not applicable"
        if score.value is None
        else f"{score.value:.3g} on the scale from {low:g} to {high:g}"
    )
    at = "" if score.step is None else f", seen at step {score.step}"
    why = "" if attribution is None else f" Steps: {attribution.reason}"
    return f"{criterion['name']}: {value}{at}. {score.reason}{why}".strip()
