"""A judge by a rubric: scores a trajectory, or compares two, by each criterion and with a reason at a step.

Where the model returns log-probabilities, a score is the expected one (G-Eval: https://arxiv.org/abs/2303.16634,
section 3), and a verdict the probability of its word. Orders and samples are averaged (`workers.judge.aggregation`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from workers.errors import RewardError
from workers.judge.aggregation import (
    CriterionComparison,
    CriterionScore,
    Score,
    Verdict,
    VerdictWithChance,
    average_orders,
    average_scores,
    require_reason,
    require_step,
)
from workers.judge.pictures import picture_limits
from workers.llm.client import LLMClient, LogprobChoices
from workers.prompts.pictures import TrajectoryView, choose_pictures, view_trajectory
from workers.prompts.templates import Prompt, prompt, quoted
from workers.schema import Trajectory

SCORE, COMPARE = "score", "compare"
VERSIONS = (1, 2)  # of the prompts
MAX_SAMPLES = 16
OVERALL = "Overall"
_SIDES = ("A", "B", "tie")
_HALF = {"A": 1.0, "B": 0.0, "tie": 0.5}


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is judged by. low, high: of its scale, in steps of one; both None where trajectories are only compared."""

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
    """criteria: for `score`, with scales. version: of the prompt. guidelines: for the judge.

    Raises RewardError for invalid arguments.
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
        if not 1 <= samples <= MAX_SAMPLES:
            raise RewardError(f"samples = {samples}: 1 to {MAX_SAMPLES}.")
        if version not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            raise RewardError(f"There is no version {version} of this judge's prompts; there are {known}.")
        self.model = model
        self.criteria = list(criteria)
        self.version = version
        self.draws: list[int | None] = [None] if samples == 1 else list(range(1, samples + 1))
        self._guidelines = quoted(guidelines)
        self._pictures = picture_limits(model.server)
        self._keys = [f"c{number}" for number in range(len(criteria))]

    def score(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[CriterionScore]:
        """By criterion. Raises NoAnswer, RewardError."""
        view = view_trajectory(run, self._pictures)
        question = self._question(SCORE, scale=True, run=view.text).showing(view.pictures())
        return self._score_by(question, run, about)

    def count_pictures(self, *runs: Trajectory) -> int:
        """How many of the pictures of the trajectories that are judged together are in the questions."""
        limits = self._pictures if len(runs) == 1 else self._pictures.half()
        return sum(len(choose_pictures(run, limits)) for run in runs)

    def _score_by(
        self, question: Prompt, run: Trajectory, about: Mapping[str, str] | None
    ) -> list[CriterionScore]:
        shape = define_answer(
            "Scores", {key: _define_score(f"Of_{key}", criterion) for key, criterion in self._by_key()}
        )
        weighed = LogprobChoices(
            "score", tuple(tuple(map(_score_word, criterion.points)) for criterion in self.criteria)
        )
        drawn = [self._scores(question, shape, run, weighed, draw, about) for draw in self.draws]
        return [average_scores([scores[number] for scores in drawn]) for number in range(len(self.criteria))]

    def compare(
        self, a: Trajectory, b: Trajectory, *, about: Mapping[str, str] | None = None
    ) -> list[CriterionComparison]:
        """By criterion. Raises NoAnswer, RewardError."""
        view_a, view_b = self._views(a, b)
        both = self._of_two(COMPARE, view_a, view_b), self._of_two(COMPARE, view_b, view_a)
        return self._compare_by(lambda draw: both, (len(a.steps), len(b.steps)), about)

    def _views(self, a: Trajectory, b: Trajectory) -> tuple[TrajectoryView, TrajectoryView]:
        """Of two trajectories in one prompt."""
        limits = self._pictures.half()
        return view_trajectory(a, limits), view_trajectory(b, limits)

    def _of_two(
        self,
        name: str,
        first: TrajectoryView,
        second: TrajectoryView,
        data: Mapping[str, str] = MappingProxyType({}),
    ) -> Prompt:
        """The question that shows `first` as run A, and `second` as run B. data: of its other places."""
        values = {"guidelines": self._guidelines, "criteria": self._criterion_lines(scale=False)}
        asked = prompt(name, self.version, **values, **data, a=first.text, b=second.text)
        return asked.showing((*first.pictures("run A"), *second.pictures("run B")))

    def _compare_by(
        self,
        ask_both: Callable[[int | None], tuple[Prompt, Prompt]],
        steps: tuple[int, int],
        about: Mapping[str, str] | None,
    ) -> list[CriterionComparison]:
        """ask_both: the questions of a sample, with a shown first and with b shown first. steps: of a and b."""
        drawn = []
        for draw in self.draws:
            question, swapped = ask_both(draw)
            found = self._verdicts(question, steps, draw, about)
            drawn.append((found, self._verdicts(swapped, steps[::-1], draw, about)))
        return [
            average_orders([(first[number], second[number]) for first, second in drawn])
            for number in range(len(self.criteria))
        ]

    def _question(self, name: str, *, scale: bool = False, **data: str) -> Prompt:
        """scale: whether the criteria come with their scores."""
        criteria = self._criterion_lines(scale=scale)
        return prompt(name, self.version, guidelines=self._guidelines, criteria=criteria, **data)

    def _criterion_lines(self, *, scale: bool) -> str:
        return "\n".join(criterion_line(key, criterion, scale=scale) for key, criterion in self._by_key())

    def _scores(
        self,
        question: Prompt,
        shape: type[Any],
        run: Trajectory,
        weighed: LogprobChoices,
        draw: int | None,
        about: Mapping[str, str] | None,
    ) -> list[tuple[Score, float | None]]:
        """By criterion, the answer and the score: the expected one where that is known."""
        check = partial(self._check_scores, len(run.steps))
        answer, odds = self.model.complete_with_logprobs(
            question, shape, check, about=about, weighed=weighed, draw=draw
        )
        found: list[tuple[Score, float | None]] = []
        for place, key in enumerate(self._keys):
            score: Score = getattr(answer, key)
            value = score.score
            if value is not None and odds and odds[place].get(_score_word(value), 0.0) > 0:
                value = math.fsum(float(word) * chance for word, chance in odds[place].items())
            found.append((score, value))
        return found

    def _verdicts(
        self, question: Prompt, steps: tuple[int, int], draw: int | None, about: Mapping[str, str] | None
    ) -> list[VerdictWithChance]:
        """By criterion. steps: of the trajectory shown first, and of the other."""
        shape = define_answer("Verdicts", dict.fromkeys(self._keys, Verdict))
        check = partial(self._check_verdicts, *steps)
        weighed = LogprobChoices("better", (_SIDES,) * len(self.criteria))
        answer, odds = self.model.complete_with_logprobs(
            question, shape, check, about=about, weighed=weighed, draw=draw
        )
        found: list[VerdictWithChance] = []
        for place, key in enumerate(self._keys):
            verdict: Verdict = getattr(answer, key)
            chance = None if verdict.better is None else _HALF[verdict.better]
            if verdict.better is not None and odds and odds[place].get(verdict.better, 0.0) > 0:
                chance = odds[place]["A"] + odds[place]["tie"] / 2
            found.append((verdict, chance))
        return found

    def _by_key(self) -> Iterable[tuple[str, Criterion]]:
        return zip(self._keys, self.criteria, strict=True)

    def _check_scores(self, steps: int, answer: Any) -> None:
        for key, criterion in self._by_key():
            score: Score = getattr(answer, key)
            if score.score is not None and score.score not in criterion.points:
                points = ", ".join(map(_score_word, criterion.points))
                raise RewardError(
                    f"{score.score:g} is no score of it; {points} are, or null.", pointer=f"/{key}/score"
                )
            require_step(score.step, steps, f"/{key}/step")
            require_reason(score.reason, score.score is not None, f"/{key}/reason")

    def _check_verdicts(self, steps_a: int, steps_b: int, answer: Any) -> None:
        for key in self._keys:
            verdict: Verdict = getattr(answer, key)
            require_step(verdict.step_a, steps_a, f"/{key}/step_a")
            require_step(verdict.step_b, steps_b, f"/{key}/step_b")
            require_reason(verdict.reason, verdict.better is not None, f"/{key}/reason")


def criterion_line(key: str, criterion: Criterion, *, scale: bool) -> str:
    """A criterion in a prompt, as JSON on one line. scale: whether with its scores."""
    line: dict[str, object] = {"key": key, "name": criterion.name}
    line |= {"definition": criterion.definition} if criterion.definition else {}
    if scale:
        line["scores"] = [_integer_if_whole(point) for point in criterion.points]
    line |= {"good": criterion.good_example} if criterion.good_example else {}
    line |= {"bad": criterion.bad_example} if criterion.bad_example else {}
    return quoted(line)


def define_answer(name: str, fields: Mapping[str, Any]) -> type[Any]:
    """Of an answer: every criterion is there once, by its key."""
    return msgspec.defstruct(
        name, list(fields.items()), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _define_score(name: str, criterion: Criterion) -> type[Any]:
    """The points are named in the schema where they are whole; msgspec knows no literal that is not."""
    whole = [int(point) for point in criterion.points if point == int(point)]
    score: Any = Literal[tuple(whole)] if len(whole) == len(criterion.points) else float
    return define_answer(name, {"reason": str, "step": int | None, "score": score | None})


def _integer_if_whole(point: float) -> float | int:
    return int(point) if point == int(point) else point


def _score_word(point: float) -> str:
    """As it stands in JSON."""
    return f"{point:g}"
