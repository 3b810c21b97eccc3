"""What a judge says by a criterion: one answer of a language model, and what is made of several.

Two runs are asked about in both orders, and the chances averaged (position bias: Zheng et al.,
https://arxiv.org/abs/2306.05685). With several samples the answers are drawn and averaged (self-consistency: Wang et
al., https://arxiv.org/abs/2203.11171).
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from workers.errors import RewardError

LONGEST_REASON = 2000  # characters that are kept


class Score(Protocol):
    reason: str
    step: int | None
    score: float | None


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str
    step_a: int | None
    step_b: int | None
    better: Literal["A", "B", "tie"] | None


# What was said, and the chance that the run shown first is the better one.
Told = tuple[Verdict, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Of one criterion. value: on its scale, the mean of the samples; None: it does not apply, or cannot be told.

    spread: standard deviation of the samples, None for one. reason, step: of the sample nearest to the mean.
    """

    value: float | None
    spread: float | None
    reason: str
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Of one criterion. chance: that run a is the better one, both orders and all samples averaged; None: cannot be
    told. first, second: the same with a shown first, and with b shown first. spread: of the samples, None for one.

    reason: of an answer with a shown first. step_a, step_b: what shows it.
    """

    chance: float | None
    first: float | None
    second: float | None
    spread: float | None
    reason: str
    step_a: int | None
    step_b: int | None


def averaged(drawn: Sequence[tuple[Score, float | None]]) -> Scored:
    values = [value for _, value in drawn if value is not None]
    if len(values) * 2 <= len(drawn):  # most say that it cannot be told
        silent = next(one for one, value in drawn if value is None)
        return Scored(value=None, spread=None, reason=clipped(silent.reason), step=silent.step)
    mean = statistics.fmean(values)
    nearest = min((abs(value - mean), place) for place, (_, value) in enumerate(drawn) if value is not None)[
        1
    ]
    return Scored(
        value=mean,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        reason=clipped(drawn[nearest][0].reason),
        step=drawn[nearest][0].step,
    )


def both_orders(both: Sequence[tuple[Told, Told]]) -> Compared:
    """Of one criterion: what was said with a shown first, and with b shown first, by sample."""
    first = [chance for (_, chance), _ in both if chance is not None]
    second = [1 - chance for _, (_, chance) in both if chance is not None]
    said = both[0][0][0]
    other = both[0][1][0]
    if not first or not second:
        return Compared(
            chance=None, first=None, second=None, spread=None, reason=clipped(said.reason),
            step_a=said.step_a, step_b=said.step_b,
        )  # fmt: skip
    chance = (statistics.fmean(first) + statistics.fmean(second)) / 2
    each = [(one + 1 - two) / 2 for (_, one), (_, two) in both if one is not None and two is not None]
    return Compared(
        chance=chance,
        first=statistics.fmean(first),
        second=statistics.fmean(second),
        spread=statistics.stdev(each) if len(each) > 1 else None,
        reason=clipped(_reason_for(chance, both)),
        step_a=said.step_a if said.step_a is not None else other.step_b,
        step_b=said.step_b if said.step_b is not None else other.step_a,
    )


def _reason_for(chance: float, both: Sequence[tuple[Told, Told]]) -> str:
    """Of an answer with a shown first, so that its letters are right; the one that says most nearly what came out."""
    told = [(one, value) for (one, value), _ in both if value is not None]
    return min(told, key=lambda one: abs(one[1] - chance))[0].reason


def clipped(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"


def require_step(step: int | None, steps: int, pointer: str) -> None:
    """Raises RewardError for a step that a run of so many does not have."""
    if step is not None and not 0 <= step < steps:
        raise RewardError(f"There is no step {step}; the run has {steps}, from 0.", pointer=pointer)


def require_reason(reason: str, is_needed: bool, pointer: str) -> None:
    """Raises RewardError."""
    if is_needed and not reason.strip():
        raise RewardError("A verdict needs its reason.", pointer=pointer)
