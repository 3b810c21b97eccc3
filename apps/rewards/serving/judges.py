"""Judges of an endpoint's spec: asked about each run, in threads of their own, within their language model's limits.

Nothing is made up: where there is no answer the request has an error, and what others of it were answered is kept, so
that who tries again pays for what failed only. Two that ask the same at once share one answer.
"""

import asyncio
import hashlib
import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import Error, connections

from apps.core.errors import DomainError
from apps.judges.executing import criterion_of
from apps.judges.models import Judge
from apps.llm.calls import record_local_usage
from apps.llm.models import SpendingPurpose
from apps.rewards.serving.judge_cache import JudgeCache
from apps.rewards.serving.judge_errors import SOON, refusal
from apps.rewards.serving.language_models import LanguageModels
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.thread_pools import OwnerPools
from workers.engine import Ask, Opinion, Overloaded
from workers.errors import RewardError
from workers.schema import Trajectory
from workers.schema.endpoints import JudgePart

AT_ONCE = 8  # runs that a language model is asked about together
MOST_WAITING = 4000  # runs for a language model
LOOKING_UP = 2  # threads


@dataclass(frozen=True, slots=True)
class _Asked:
    """A judge as it is now. names, weights: of its criteria."""

    judge: Judge
    criteria: tuple[dict[str, Any], ...]
    weights: tuple[float, ...]


@dataclass(eq=False, slots=True)
class _UnderWay:
    """Questions that are being answered, by what was asked."""

    answers: dict[bytes, "Future[list[Any]]"] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Judges:
    """Called on the event loop."""

    def __init__(self, kept_bytes: int) -> None:
        self._models = LanguageModels(JudgeCache(kept_bytes))
        self._under_way = _UnderWay()
        self._lanes = OwnerPools[int]("touchstone-judge", AT_ONCE)  # by language model
        self._looking_up = ThreadPoolExecutor(LOOKING_UP, thread_name_prefix="touchstone-judges")

    def of(self, judges: Mapping[str, int], project: str) -> Ask:
        """Who asks the judges of a revision. judges: their keys, by name."""
        return partial(self._ask, judges, project)

    async def _ask(
        self, judges: Mapping[str, int], project: str, part: JudgePart, runs: Sequence[Trajectory]
    ) -> list[Opinion]:
        """Raises Problem 503 where nobody can be asked or does not answer, 502 where that is no answer; Overloaded."""
        loop = asyncio.get_running_loop()
        key = judges.get(part.judge)
        asked = await loop.run_in_executor(self._looking_up, _look_up, key, project, part)
        assert asked.judge.llm_connection_id is not None
        lane = self._lanes.of(asked.judge.llm_connection_id)
        if lane.waiting >= MOST_WAITING:
            raise Overloaded(
                f"{lane.waiting} runs are waiting for the language model of the judge {part.judge}; the limit is "
                f"{MOST_WAITING}. Try again in {SOON} s, with fewer at once.",
                retry_after=SOON,
            )
        with lane.holding(len(runs)):
            futures = [lane.threads.submit(self._opinion, asked, part, run) for run in runs]
            try:
                return await asyncio.gather(*map(asyncio.wrap_future, futures))
            finally:
                for future in futures:
                    future.cancel()

    def close(self) -> None:
        self._looking_up.shutdown(wait=False, cancel_futures=True)
        self._lanes.close()
        self._models.close()

    def _opinion(self, asked: _Asked, part: JudgePart, run: Trajectory) -> Opinion:
        return _opinion(asked, part, self._scored(asked, part, run))

    def _scored(self, asked: _Asked, part: JudgePart, run: Trajectory) -> list[Any]:
        """What is asked for already is waited for."""
        key, under_way = _key(asked.judge, run), self._under_way
        with under_way.lock:
            other = under_way.answers.get(key)
            if other is None:
                mine = under_way.answers[key] = Future()
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
            with under_way.lock:
                del under_way.answers[key]

    def _score(self, asked: _Asked, part: JudgePart, run: Trajectory) -> list[Any]:
        from workers.judge.rubric import Criterion, RubricJudge

        judge, row = asked.judge, asked.judge.llm_connection
        assert row is not None
        try:
            model = self._models.get(row, part.timeout_seconds)
            rubric = RubricJudge(
                model,
                [Criterion(**one) for one in asked.criteria],
                version=judge.prompt,
                samples=judge.samples,
                guidelines=judge.guidelines,
            )
            try:
                return list(rubric.score(run))
            finally:
                if row.is_local and model.usage.calls:
                    usage = {name: getattr(model.usage, name) for name in _COUNTED}
                    record_local_usage(row, usage, SpendingPurpose.ENDPOINTS)
        except (RewardError, DomainError, Error) as error:
            raise refusal(error, judge=judge.name, llm_connection=row.name) from error
        finally:
            connections.close_all()


_COUNTED = ("calls", "prompt_tokens", "completion_tokens")


def _look_up(key: int | None, project: str, part: JudgePart) -> _Asked:
    """For a thread: it gives its connection back. Raises Problem 503 where there is nobody to ask."""
    try:
        rows = Judge.objects.select_related("llm_connection", "rubric")
        judge = rows.filter(pk=key or 0, project__slug=project, mode=Judge.Mode.SCORE).first()
        if judge is None or judge.rubric is None:
            raise Problem(
                f"The judge {part.judge} was removed; without it there is no reward. Deploy a revision without it.",
                status=503,
            )
        if judge.llm_connection is None:
            raise Problem(
                f"The language model of the judge {part.judge} was removed, so there is nobody to ask. Make a judge "
                "with another, and deploy a revision with that.",
                status=503,
            )
        entries = list(judge.rubric.entries.select_related("criterion"))
        return _Asked(
            judge,
            tuple(criterion_of(entry.criterion, judge.mode) for entry in entries),
            tuple(entry.weight for entry in entries),
        )
    except Error as error:
        raise refusal(error, judge=part.judge, llm_connection="") from error
    finally:
        connections.close_all()


def _key(judge: Judge, run: Trajectory) -> bytes:
    from workers.prompts.trajectory_text import shown

    row = judge.llm_connection
    assert row is not None
    asked = f"{judge.pk}\0{row.pk}\0{row.base_url}\0{row.model}\0{row.folder}\0{shown(run)}"
    return hashlib.sha256(asked.encode(errors="surrogatepass")).digest()


def _opinion(asked: _Asked, part: JudgePart, scored: Sequence[Any]) -> Opinion:
    """scored: `workers.judge.rubric.Scored`, by criterion.

    What does not apply is no part of the mean. What has a weight below 0 is better the lower it is.
    """
    rows = [
        (criterion, weight, one)
        for criterion, weight, one in zip(asked.criteria, asked.weights, scored, strict=True)
        if part.criterion in (None, criterion["name"])
    ]
    told = [
        (1.0 if part.criterion is not None else weight, _place(criterion, one.value))
        for criterion, weight, one in rows
        if one.value is not None
    ]
    total = math.fsum(abs(weight) for weight, _ in told)
    better = ((abs(weight), place if weight > 0 else 1 - place) for weight, place in told)
    value = math.fsum(weight * place for weight, place in better) / total if total else None
    return Opinion(value, "\n".join(_in_words(criterion, one) for criterion, _, one in rows))


def _place(criterion: Mapping[str, Any], value: float) -> float:
    low, high = criterion["low"], criterion["high"]
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _in_words(criterion: Mapping[str, Any], one: Any) -> str:
    low, high = criterion["low"], criterion["high"]
    said = "cannot be told" if one.value is None else f"{one.value:.3g} on the scale from {low:g} to {high:g}"
    at = "" if one.step is None else f", seen at step {one.step}"
    return f"{criterion['name']}: {said}{at}. {one.reason}".strip()
