"""The result of a judge by a criterion, from one or several answers of a language model.

Two trajectories are compared in both orders, and the chances averaged (position bias: Zheng et al.,
https://arxiv.org/abs/2306.05685). With several samples the answers are drawn and averaged (self-consistency: Wang et
al., https://arxiv.org/abs/2203.11171).
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from workers.errors import RewardError

MAX_REASON_LENGTH = 2000  # characters that are kept


class Score(Protocol):
    reason: str
    step: int | None
    score: float | None


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str
    step_a: int | None
    step_b: int | None
    better: Literal["A", "B", "tie"] | None


# A verdict, and the probability that the trajectory shown first is the better one.
VerdictWithChance = tuple[Verdict, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionScore:
    """Of one criterion. value: on its scale, the mean of the samples; None: it does not apply, or cannot be decided.

    spread: standard deviation of the samples, None for one. reason, step: of the sample nearest to the mean.
    """

    value: float | None
    spread: float | None
    reason: str
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionComparison:
    """Of one criterion. chance: that a is the better one, both orders and all samples averaged; None: cannot be
    decided. first, second: the same with a shown first, and with b shown first. spread: of the samples, None for one.

    reason: of an answer with a shown first. step_a, step_b: what shows it.
    """

    chance: float | None
    first: float | None
    second: float | None
    spread: float | None
    reason: str
    step_a: int | None
    step_b: int | None


def average_scores(drawn: Sequence[tuple[Score, float | None]]) -> CriterionScore:
    values = [value for _, value in drawn if value is not None]
    if len(values) * 2 <= len(drawn):  # most of them are undecided
        undecided = next(score for score, value in drawn if value is None)
        return CriterionScore(
            value=None, spread=None, reason=clip_reason(undecided.reason), step=undecided.step
        )
    mean = statistics.fmean(values)
    nearest = min((abs(value - mean), place) for place, (_, value) in enumerate(drawn) if value is not None)[
        1
    ]
    return CriterionScore(
        value=mean,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        reason=clip_reason(drawn[nearest][0].reason),
        step=drawn[nearest][0].step,
    )


def average_orders(both: Sequence[tuple[VerdictWithChance, VerdictWithChance]]) -> CriterionComparison:
    """Of one criterion. both: by sample, the verdict with a shown first, and with b shown first."""
    first = [chance for (_, chance), _ in both if chance is not None]
    second = [1 - chance for _, (_, chance) in both if chance is not None]
    verdict = both[0][0][0]
    other = both[0][1][0]
    if not first or not second:
        return CriterionComparison(
            chance=None, first=None, second=None, spread=None, reason=clip_reason(verdict.reason),
            step_a=verdict.step_a, step_b=verdict.step_b,
        )  # fmt: skip
    chance = (statistics.fmean(first) + statistics.fmean(second)) / 2
    each = [
        (a_first + 1 - b_first) / 2
        for (_, a_first), (_, b_first) in both
        if a_first is not None and b_first is not None
    ]
    return CriterionComparison(
        chance=chance,
        first=statistics.fmean(first),
        second=statistics.fmean(second),
        spread=statistics.stdev(each) if len(each) > 1 else None,
        reason=clip_reason(_reason_for(chance, both)),
        step_a=verdict.step_a if verdict.step_a is not None else other.step_b,
        step_b=verdict.step_b if verdict.step_b is not None else other.step_a,
    )


def _reason_for(chance: float, both: Sequence[tuple[VerdictWithChance, VerdictWithChance]]) -> str:
    """Of an answer with a shown first, so that its letters are right; the one nearest to the average."""
    decided = [(verdict, value) for (verdict, value), _ in both if value is not None]
    return min(decided, key=lambda answer: abs(answer[1] - chance))[0].reason


def clip_reason(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1]}…"


def require_step(step: int | None, steps: int, pointer: str) -> None:
    """steps: the number of steps of the trajectory. Raises RewardError."""
    if step is not None and not 0 <= step < steps:
        raise RewardError(f"There is no step {step}; the run has {steps}, from 0.", pointer=pointer)


def require_reason(reason: str, is_needed: bool, pointer: str) -> None:
    """Raises RewardError."""
    if is_needed and not reason.strip():
        raise RewardError("A verdict needs its reason.", pointer=pointer)
