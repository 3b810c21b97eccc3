"""A judge by a rubric: scores a run, or says which of two is better, by each criterion and with a reason at a step.

Where the model tells how likely its words were, a score is the expected one (G-Eval: https://arxiv.org/abs/2303.16634,
section 3), and a verdict the chance of its word. Orders and samples are averaged (`workers.judge.opinions`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from workers.errors import RewardError
from workers.judge.opinions import (
    Compared,
    Score,
    Scored,
    Told,
    Verdict,
    averaged,
    both_orders,
    require_reason,
    require_step,
)
from workers.llm.client import LLMClient, LogprobChoices
from workers.prompts.templates import Prompt, prompt, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory

SCORE, COMPARE = "score", "compare"
VERSIONS = (1, 2)  # of the prompts
MOST_SAMPLES = 16
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


class RubricJudge:
    """criteria: for `score`, with scales. version: of the prompt. guidelines: for whoever judges.

    Raises RewardError for what cannot be.
    """

    def __init__(
        self,
        model: LLMClient,
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
        if version not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            raise RewardError(f"There is no version {version} of this judge's prompts; there are {known}.")
        self.model = model
        self.criteria = list(criteria)
        self.version = version
        self.draws: list[int | None] = [None] if samples == 1 else list(range(1, samples + 1))
        self._guidelines = quoted(guidelines)
        self._keys = [f"c{number}" for number in range(len(criteria))]

    def score(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[Scored]:
        """By criterion. Raises NoAnswer, RewardError."""
        asked = self._question(SCORE, scale=True, run=shown(run))
        shape = struct_of("Scores", {key: _score_of(f"Of_{key}", one) for key, one in self._by_key()})
        weighed = LogprobChoices("score", tuple(tuple(map(_word, one.points)) for one in self.criteria))
        drawn = [self._scores(asked, shape, run, weighed, draw, about) for draw in self.draws]
        return [averaged([one[number] for one in drawn]) for number in range(len(self.criteria))]

    def compare(
        self, a: Trajectory, b: Trajectory, *, about: Mapping[str, str] | None = None
    ) -> list[Compared]:
        """By criterion. Raises NoAnswer, RewardError."""
        one, two, steps = shown(a), shown(b), (len(a.steps), len(b.steps))
        asked, other = self._question(COMPARE, a=one, b=two), self._question(COMPARE, a=two, b=one)
        drawn = []
        for draw in self.draws:
            found = self._verdicts(asked, steps, draw, about)
            drawn.append((found, self._verdicts(other, steps[::-1], draw, about)))
        return [
            both_orders([(first[number], second[number]) for first, second in drawn])
            for number in range(len(self.criteria))
        ]

    def _question(self, name: str, *, scale: bool = False, **data: str) -> Prompt:
        """scale: whether the criteria come with their scores."""
        criteria = "\n".join(self._told(number, scale=scale) for number in range(len(self.criteria)))
        return prompt(name, self.version, guidelines=self._guidelines, criteria=criteria, **data)

    def _scores(
        self,
        asked: Prompt,
        shape: type[Any],
        run: Trajectory,
        weighed: LogprobChoices,
        draw: int | None,
        about: Mapping[str, str] | None,
    ) -> list[tuple[Score, float | None]]:
        """By criterion, what was said, and the score, the expected one where that is known."""
        check = partial(self._check_scores, len(run.steps))
        answer, odds = self.model.complete_with_logprobs(
            asked, shape, check, about=about, weighed=weighed, draw=draw
        )
        found: list[tuple[Score, float | None]] = []
        for place, key in enumerate(self._keys):
            one: Score = getattr(answer, key)
            value = one.score
            if value is not None and odds and odds[place].get(_word(value), 0.0) > 0:
                value = math.fsum(float(word) * chance for word, chance in odds[place].items())
            found.append((one, value))
        return found

    def _verdicts(
        self, asked: Prompt, steps: tuple[int, int], draw: int | None, about: Mapping[str, str] | None
    ) -> list[Told]:
        """By criterion. steps: of the run shown first, and of the other."""
        shape = struct_of("Verdicts", dict.fromkeys(self._keys, Verdict))
        check = partial(self._check_verdicts, *steps)
        weighed = LogprobChoices("better", (_SIDES,) * len(self.criteria))
        answer, odds = self.model.complete_with_logprobs(
            asked, shape, check, about=about, weighed=weighed, draw=draw
        )
        found: list[Told] = []
        for place, key in enumerate(self._keys):
            one: Verdict = getattr(answer, key)
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
            one: Score = getattr(answer, key)
            if one.score is not None and one.score not in criterion.points:
                said = ", ".join(map(_word, criterion.points))
                raise RewardError(
                    f"{one.score:g} is no score of it; {said} are, or null.", pointer=f"/{key}/score"
                )
            require_step(one.step, steps, f"/{key}/step")
            require_reason(one.reason, one.score is not None, f"/{key}/reason")

    def _check_verdicts(self, steps_a: int, steps_b: int, answer: Any) -> None:
        for key in self._keys:
            one: Verdict = getattr(answer, key)
            require_step(one.step_a, steps_a, f"/{key}/step_a")
            require_step(one.step_b, steps_b, f"/{key}/step_b")
            require_reason(one.reason, one.better is not None, f"/{key}/reason")


def struct_of(name: str, fields: Mapping[str, Any]) -> type[Any]:
    """Of an answer: every criterion is there once, by its key."""
    return msgspec.defstruct(
        name, list(fields.items()), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _score_of(name: str, criterion: Criterion) -> type[Any]:
    """The points are named in the schema where they are whole; msgspec knows no literal that is not."""
    whole = [int(point) for point in criterion.points if point == int(point)]
    score: Any = Literal[tuple(whole)] if len(whole) == len(criterion.points) else float
    return struct_of(name, {"reason": str, "step": int | None, "score": score | None})


def _whole(point: float) -> float | int:
    return int(point) if point == int(point) else point


def _word(point: float) -> str:
    """As it stands in JSON."""
    return f"{point:g}"
