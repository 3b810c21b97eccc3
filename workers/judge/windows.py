"""A judge of windows: labels a few agent steps in a row, seen alone, and each distinct window once.

As ONI labels observations (https://arxiv.org/abs/2410.23022): a label belongs to the text of a window, so that a window
that came before, in this trajectory or another of the task, costs no call. Labels are those of `workers.judge.steps`:
models of steps learn from them (its classification), pairs of windows with different labels order them (its ranking,
`workers.schema.window_pairs`), and a label that is shared among repeated windows is its hashing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workers.errors import RewardError
from workers.judge.aggregation import require_reason
from workers.judge.repeats import WindowKey, view_window, window_key
from workers.judge.rubric import Criterion
from workers.judge.steps import (
    JudgeLabel,
    LabelledStep,
    StepJudge,
    StepVerdict,
    average_labels,
    expected_value,
    label_choices,
)
from workers.llm.client import LLMClient, NoAnswer
from workers.prompts.pictures import TrajectoryView
from workers.prompts.templates import prompt
from workers.schema import Trajectory
from workers.schema.window_pairs import windows_of

PROMPT = "label_window"
MOST_STEPS = 16  # agent steps of a window


class WindowLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str
    label: JudgeLabel


class WindowJudge(StepJudge):
    """window: agent steps; the last window of a trajectory may be shorter. Raises RewardError for invalid arguments."""

    def __init__(
        self,
        model: LLMClient,
        criteria: Sequence[Criterion] = (),
        *,
        window: int,
        version: int = 1,
        samples: int = 1,
        guidelines: str = "",
    ) -> None:
        super().__init__(model, criteria, version=version, samples=samples, guidelines=guidelines)
        if not 1 <= window <= MOST_STEPS:
            raise RewardError(f"window = {window}: 1 to {MOST_STEPS} agent steps.")
        self.window = window

    def label(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[StepVerdict]:
        """By agent step: that of its window, whose last step has the reason. Raises NoAnswer, RewardError."""
        places = windows_of(run, self.window)
        if not places:
            raise NoAnswer("The trajectory has no agent step to label.")
        opening = self._opening(run, places)
        counts = Counter[WindowKey]()
        found: list[StepVerdict] = []
        for start, end in places:
            window = view_window(run, start, end, self._pictures.half())
            key = window_key(window)
            agent_steps = [step for step in range(start, end) if run.steps[step].source == "agent"]
            drawn = [self._label(opening, window, agent_steps[-1], draw, about) for draw in self.draws]
            verdict = average_labels(0, drawn)
            for step in agent_steps:
                reason = verdict.reason if step == agent_steps[-1] else ""
                found.append(
                    StepVerdict(
                        agent_step=len(found), step=step, label=verdict.label, value=verdict.value,
                        spread=verdict.spread, reason=reason, repeats=counts[key],
                    )
                )  # fmt: skip
            counts[key] += 1
        return found

    def count_pictures(self, run: Trajectory) -> int:
        places = windows_of(run, self.window)
        views = [view_window(run, start, end, self._pictures.half()) for start, end in places]
        opening = [self._opening(run, places)] if places else []
        return sum(len(view.chosen) for view in (*opening, *views))

    def _opening(self, run: Trajectory, places: Sequence[tuple[int, int]]) -> TrajectoryView:
        return view_window(run, 0, places[0][0], self._pictures.half())

    def _label(
        self,
        opening: TrajectoryView,
        window: TrajectoryView,
        step: int,
        draw: int | None,
        about: Mapping[str, str] | None,
    ) -> tuple[LabelledStep, float]:
        question = prompt(
            PROMPT,
            self.version,
            guidelines=self._guidelines,
            criteria=self._criteria,
            opening=opening.text,
            window=window.text,
        ).showing((*opening.pictures("the opening"), *window.pictures("the window")))
        answer, odds = self.model.complete_with_logprobs(
            question, WindowLabel, _check, about=about, weighed=label_choices(1), draw=draw
        )
        value = expected_value(answer.label, odds[0] if odds else {})
        return LabelledStep(step=step, reason=answer.reason, label=answer.label), value


def step_judge_of(
    model: LLMClient, criteria: Sequence[Criterion], *, window: int, **options: Any
) -> StepJudge:
    """window: 0 for a judge that sees each step in its trajectory. Raises RewardError."""
    if not window:
        return StepJudge(model, criteria, **options)
    return WindowJudge(model, criteria, window=window, **options)


def _check(answer: WindowLabel) -> None:
    require_reason(answer.reason, answer.label != "neutral", "/reason")
