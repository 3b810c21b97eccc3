"""A judge by a rubric: scores a run, or says which of two is better, by each criterion and with a reason at a step.

Two runs are asked about in both orders, and the chances averaged (position bias: Zheng et al.,
https://arxiv.org/abs/2306.05685). With several samples the answers are drawn and averaged (self-consistency: Wang et
al., https://arxiv.org/abs/2203.11171). Where the model tells how likely its words were, a score is the expected one
(G-Eval: https://arxiv.org/abs/2303.16634, section 3), and a verdict the chance of its word.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from workers.errors import RewardError
from workers.judge.client import LanguageModel, Weighed
from workers.judge.prompts import Prompt, prompt, quoted
from workers.judge.reading import shown
from workers.schema import Trajectory

SCORE, COMPARE = "score", "compare"
VERSIONS: Mapping[str, tuple[int, ...]] = {SCORE: (1, 2), COMPARE: (1, 2)}  # of the prompts
MOST_SAMPLES = 16
LONGEST_REASON = 2000  # characters that are kept
OVERALL = "Overall"
_SIDES = ("A", "B", "tie")
_HALF = {"A": 1.0, "B": 0.0, "tie": 0.5}


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is judged by. low, high: of its scale, in steps of one; both None where runs are only compared."""

    name: str
    definition: str = ""
    good_example: str = ""
    bad_example: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def points(self) -> list[float]:
        assert self.low is not None and self.high is not None
        return [self.low + number for number in range(int(self.high - self.low) + 1)]


class _Score(Protocol):
    reason: str
    step: int | None
    score: float | None


class _Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str
    step_a: int | None
    step_b: int | None
    better: Literal["A", "B", "tie"] | None


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


class RubricJudge:
    """criteria: for `score`, with scales. version: of the prompt. guidelines: for whoever judges.

    Raises RewardError for what cannot be.
    """

    def __init__(
        self,
        model: LanguageModel,
        criteria: Sequence[Criterion],
        *,
        version: int = 1,
        samples: int = 1,
        guidelines: str = "",
    ) -> None:
        if not criteria:
            raise RewardError("A judge needs something to judge by: a rubric with a criterion at least.")
        if not 1 <= samples <= MOST_SAMPLES:
            raise RewardError(f"samples = {samples}: 1 to {MOST_SAMPLES}.")
        self.model = model
        self.criteria = list(criteria)
        self.version = version
        self.draws: list[int | None] = [None] if samples == 1 else list(range(1, samples + 1))
        self._guidelines = quoted(guidelines)
        self._keys = [f"c{number}" for number in range(len(criteria))]

    def score(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[Scored]:
        """By criterion. Raises NoAnswer, RewardError."""
        asked = prompt(
            SCORE,
            self.version,
            guidelines=self._guidelines,
            criteria="\n".join(self._told(number, scale=True) for number in range(len(self.criteria))),
            run=shown(run),
        )
        shape = _struct("Scores", {key: _score_of(f"Of_{key}", one) for key, one in self._by_key()})
        weighed = Weighed("score", tuple(tuple(map(_word, one.points)) for one in self.criteria))
        drawn = [self._scores(asked, shape, run, weighed, draw, about) for draw in self.draws]
        return [_averaged([one[number] for one in drawn]) for number in range(len(self.criteria))]

    def compare(
        self, a: Trajectory, b: Trajectory, *, about: Mapping[str, str] | None = None
    ) -> list[Compared]:
        """By criterion. Raises NoAnswer, RewardError."""
        drawn = [
            (self._verdicts(a, b, draw, about), self._verdicts(b, a, draw, about)) for draw in self.draws
        ]
        found = []
        for number in range(len(self.criteria)):
            both = [(first[number], second[number]) for first, second in drawn]
            found.append(_both_orders(both))
        return found

    def _scores(
        self,
        asked: Prompt,
        shape: type[Any],
        run: Trajectory,
        weighed: Weighed,
        draw: int | None,
        about: Mapping[str, str] | None,
    ) -> list[tuple[_Score, float | None]]:
        """By criterion, what was said, and the score, the expected one where that is known."""
        check = partial(self._check_scores, len(run.steps))
        answer, odds = self.model.ask_weighed(asked, shape, check, about=about, weighed=weighed, draw=draw)
        found: list[tuple[_Score, float | None]] = []
        for place, key in enumerate(self._keys):
            one: _Score = getattr(answer, key)
            value = one.score
            if value is not None and odds and odds[place].get(_word(value), 0.0) > 0:
                value = math.fsum(float(word) * chance for word, chance in odds[place].items())
            found.append((one, value))
        return found

    def _verdicts(
        self, a: Trajectory, b: Trajectory, draw: int | None, about: Mapping[str, str] | None
    ) -> list[tuple[_Verdict, float | None]]:
        """By criterion, what was said, and the chance that the run shown first is better."""
        asked = prompt(
            COMPARE,
            self.version,
            guidelines=self._guidelines,
            criteria="\n".join(self._told(number, scale=False) for number in range(len(self.criteria))),
            a=shown(a),
            b=shown(b),
        )
        shape = _struct("Verdicts", dict.fromkeys(self._keys, _Verdict))
        check = partial(self._check_verdicts, len(a.steps), len(b.steps))
        weighed = Weighed("better", (_SIDES,) * len(self.criteria))
        answer, odds = self.model.ask_weighed(asked, shape, check, about=about, weighed=weighed, draw=draw)
        found: list[tuple[_Verdict, float | None]] = []
        for place, key in enumerate(self._keys):
            one: _Verdict = getattr(answer, key)
            chance = None if one.better is None else _HALF[one.better]
            if one.better is not None and odds and odds[place].get(one.better, 0.0) > 0:
                chance = odds[place]["A"] + odds[place]["tie"] / 2
            found.append((one, chance))
        return found

    def _by_key(self) -> Iterable[tuple[str, Criterion]]:
        return zip(self._keys, self.criteria, strict=True)

    def _told(self, number: int, *, scale: bool) -> str:
        one = self.criteria[number]
        told: dict[str, object] = {"key": self._keys[number], "name": one.name}
        told |= {"definition": one.definition} if one.definition else {}
        if scale:
            told["scores"] = [_whole(point) for point in one.points]
        told |= {"good": one.good_example} if one.good_example else {}
        told |= {"bad": one.bad_example} if one.bad_example else {}
        return quoted(told)

    def _check_scores(self, steps: int, answer: Any) -> None:
        for key, criterion in self._by_key():
            one: _Score = getattr(answer, key)
            if one.score is not None and one.score not in criterion.points:
                said = ", ".join(map(_word, criterion.points))
                raise RewardError(
                    f"{one.score:g} is no score of it; {said} are, or null.", pointer=f"/{key}/score"
                )
            _check_step(one.step, steps, f"/{key}/step")
            _check_reason(one.reason, one.score is not None, f"/{key}/reason")

    def _check_verdicts(self, steps_a: int, steps_b: int, answer: Any) -> None:
        for key in self._keys:
            one: _Verdict = getattr(answer, key)
            _check_step(one.step_a, steps_a, f"/{key}/step_a")
            _check_step(one.step_b, steps_b, f"/{key}/step_b")
            _check_reason(one.reason, one.better is not None, f"/{key}/reason")


def _struct(name: str, fields: Mapping[str, Any]) -> type[Any]:
    """Of an answer: every criterion is there once, by its key."""
    return msgspec.defstruct(
        name, list(fields.items()), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _score_of(name: str, criterion: Criterion) -> type[Any]:
    """The points are named in the schema where they are whole; msgspec knows no literal that is not."""
    whole = [int(point) for point in criterion.points if point == int(point)]
    score: Any = Literal[tuple(whole)] if len(whole) == len(criterion.points) else float
    return _struct(name, {"reason": str, "step": int | None, "score": score | None})


def _averaged(drawn: Sequence[tuple[_Score, float | None]]) -> Scored:
    values = [value for _, value in drawn if value is not None]
    if len(values) * 2 <= len(drawn):  # most say that it cannot be told
        silent = next(one for one, value in drawn if value is None)
        return Scored(value=None, spread=None, reason=_clipped(silent.reason), step=silent.step)
    mean = statistics.fmean(values)
    nearest = min((abs(value - mean), place) for place, (_, value) in enumerate(drawn) if value is not None)[
        1
    ]
    return Scored(
        value=mean,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        reason=_clipped(drawn[nearest][0].reason),
        step=drawn[nearest][0].step,
    )


def _both_orders(
    both: Sequence[tuple[tuple[_Verdict, float | None], tuple[_Verdict, float | None]]],
) -> Compared:
    """Of one criterion: what was said with a shown first, and with b shown first, by sample."""
    first = [chance for (_, chance), _ in both if chance is not None]
    second = [1 - chance for _, (_, chance) in both if chance is not None]
    said = both[0][0][0]
    other = both[0][1][0]
    if not first or not second:
        return Compared(
            chance=None, first=None, second=None, spread=None, reason=_clipped(said.reason),
            step_a=said.step_a, step_b=said.step_b,
        )  # fmt: skip
    chance = (statistics.fmean(first) + statistics.fmean(second)) / 2
    each = [(one + 1 - two) / 2 for (_, one), (_, two) in both if one is not None and two is not None]
    return Compared(
        chance=chance,
        first=statistics.fmean(first),
        second=statistics.fmean(second),
        spread=statistics.stdev(each) if len(each) > 1 else None,
        reason=_clipped(_reason_for(chance, both)),
        step_a=said.step_a if said.step_a is not None else other.step_b,
        step_b=said.step_b if said.step_b is not None else other.step_a,
    )


def _reason_for(
    chance: float, both: Sequence[tuple[tuple[_Verdict, float | None], tuple[_Verdict, float | None]]]
) -> str:
    """Of an answer with a shown first, so that its letters are right; the one that says most nearly what came out."""
    told = [(one, value) for (one, value), _ in both if value is not None]
    return min(told, key=lambda one: abs(one[1] - chance))[0].reason


def _whole(point: float) -> float | int:
    return int(point) if point == int(point) else point


def _word(point: float) -> str:
    """As it stands in JSON."""
    return f"{point:g}"


def _check_step(step: int | None, steps: int, pointer: str) -> None:
    if step is not None and not 0 <= step < steps:
        raise RewardError(f"There is no step {step}; the run has {steps}, from 0.", pointer=pointer)


def _check_reason(reason: str, is_needed: bool, pointer: str) -> None:
    if is_needed and not reason.strip():
        raise RewardError("A verdict needs its reason.", pointer=pointer)


def _clipped(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"
