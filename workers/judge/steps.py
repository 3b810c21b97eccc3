"""A judge of steps: labels every agent step of a trajectory, many steps in one call.

As an annotator (its labels are step labels of the judge) and as a component (step rewards), as in the step-wise
assessment of SEAgent (https://arxiv.org/abs/2508.04700). An answer that leaves a step out, or labels one that was not
listed, is refused and asked for again: no label is ever filled in.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import msgspec

from workers.errors import RewardError
from workers.judge.aggregation import clip_reason, require_reason
from workers.judge.pictures import picture_limits
from workers.judge.repeats import step_repeats
from workers.judge.rubric import MAX_SAMPLES, Criterion, criterion_line
from workers.llm.client import LLMClient, LogprobChoices, NoAnswer
from workers.prompts.pictures import choose_pictures, view_trajectory
from workers.prompts.templates import prompt, quoted
from workers.prompts.trajectory_text import CHARACTERS, CLOSE_CHARACTERS
from workers.schema import Trajectory

STEPS = "steps"  # the mode
PROMPT = "label_steps"
VERSIONS = (1,)  # of the prompt
STEPS_PER_CALL = 16
JudgeLabel = Literal["good", "neutral", "redundant", "bad"]
LABELS: tuple[JudgeLabel, ...] = ("good", "neutral", "redundant", "bad")
LABEL_VALUES: Mapping[str, float] = {"good": 1.0, "neutral": 0.0, "redundant": 0.0, "bad": -1.0}


class LabelledStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """step: its index among all steps of the trajectory."""

    step: int
    reason: str
    label: JudgeLabel


class LabelledSteps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: list[LabelledStep]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """Of one agent step. step: its index among all steps. label: the most frequent of the samples.

    value: -1 (bad) to 1 (good), neutral and redundant are 0: the expected value over the labels where the model returns
    log-probabilities, and the mean of the samples. spread: their standard deviation, None for one. repeats: how many
    earlier steps, or windows, of the trajectory read the same.
    """

    agent_step: int
    step: int
    label: JudgeLabel
    value: float
    spread: float | None
    reason: str
    repeats: int = 0


class StepJudge:
    """criteria: what matters in a step; may be empty, their scales are not used. samples: answers that are averaged.

    Raises RewardError for invalid arguments.
    """

    def __init__(
        self,
        model: LLMClient,
        criteria: Sequence[Criterion] = (),
        *,
        version: int = 1,
        samples: int = 1,
        guidelines: str = "",
    ) -> None:
        if not 1 <= samples <= MAX_SAMPLES:
            raise RewardError(f"samples = {samples}: 1 to {MAX_SAMPLES}.")
        if version not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            raise RewardError(f"There is no version {version} of the prompt for steps; there is {known}.")
        self.model = model
        self.version = version
        self.draws: list[int | None] = [None] if samples == 1 else list(range(1, samples + 1))
        self._pictures = picture_limits(model.server)
        self._guidelines = quoted(guidelines)
        self._criteria = "\n".join(
            criterion_line(f"c{number}", criterion, scale=False) for number, criterion in enumerate(criteria)
        )

    def label(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[StepVerdict]:
        """By agent step. Raises NoAnswer, RewardError."""
        agent_steps = [index for index, step in enumerate(run.steps) if step.source == "agent"]
        if not agent_steps:
            raise NoAnswer("The trajectory has no agent step to label.")
        drawn: dict[int, list[tuple[LabelledStep, float]]] = {step: [] for step in agent_steps}
        for listed in _calls(agent_steps):
            for draw in self.draws:
                for labelled, value in self._labels(run, listed, draw, about):
                    drawn[labelled.step].append((labelled, value))
        repeats_by_step = step_repeats(run, self._pictures)
        return [
            replace(average_labels(number, drawn[step]), repeats=repeats)
            for (number, step), repeats in zip(enumerate(agent_steps), repeats_by_step, strict=True)
        ]

    def count_pictures(self, run: Trajectory) -> int:
        """How many pictures of the trajectory are in the questions."""
        agent_steps = [index for index, step in enumerate(run.steps) if step.source == "agent"]
        chosen = {
            place
            for listed in _calls(agent_steps)
            for place in choose_pictures(run, self._pictures, pictures_of=_steps_seen(listed))
        }
        return len(chosen)

    def _labels(
        self, run: Trajectory, listed: Sequence[int], draw: int | None, about: Mapping[str, str] | None
    ) -> list[tuple[LabelledStep, float]]:
        """Of each step that is listed, in the order of the answer, its label and value."""
        is_cut = len(run.steps) * CLOSE_CHARACTERS > CHARACTERS
        view = view_trajectory(
            run, self._pictures, closely=listed if is_cut else (), pictures_of=_steps_seen(listed)
        )
        question = prompt(
            PROMPT,
            self.version,
            guidelines=self._guidelines,
            criteria=self._criteria,
            steps=quoted(list(listed)),
            run=view.text,
        ).showing(view.pictures())
        answer, odds = self.model.complete_with_logprobs(
            question,
            LabelledSteps,
            partial(check_labels, listed),
            about=about,
            weighed=label_choices(len(listed)),
            draw=draw,
        )
        return [
            (labelled, expected_value(labelled.label, odds[place] if odds else {}))
            for place, labelled in enumerate(answer.steps)
        ]


def _calls(agent_steps: Sequence[int]) -> list[Sequence[int]]:
    """The steps that are labelled in one call, by call."""
    return [agent_steps[at : at + STEPS_PER_CALL] for at in range(0, len(agent_steps), STEPS_PER_CALL)]


def _steps_seen(listed: Sequence[int]) -> range:
    """Those whose pictures may go with a call: from the observation before the first step to the one after the last."""
    return range(max(listed[0] - 1, 0), listed[-1] + 2)


def label_choices(count: int) -> LogprobChoices:
    """Of an answer with so many labels."""
    return LogprobChoices("label", (LABELS,) * count)


def expected_value(label: JudgeLabel, odds: Mapping[str, float]) -> float:
    """By the chances of the labels, where they are known and the given one has some."""
    if odds.get(label, 0.0) <= 0:
        return LABEL_VALUES[label]
    return math.fsum(LABEL_VALUES[each] * chance for each, chance in odds.items())


def check_labels(listed: Sequence[int], answer: LabelledSteps) -> None:
    """Every step of the list has exactly one label, and no other step has. Raises RewardError."""
    known = set(listed)
    for place, labelled in enumerate(answer.steps):
        if labelled.step not in known:
            raise RewardError(
                f"Step {labelled.step} is not in the list of steps to label: {_numbers(listed)}.",
                pointer=f"/steps/{place}/step",
            )
        require_reason(labelled.reason, labelled.label != "neutral", f"/steps/{place}/reason")
    counts = Counter(labelled.step for labelled in answer.steps)
    if missing := [step for step in listed if not counts[step]]:
        raise RewardError(
            f"{len(missing)} of {len(listed)} steps have no label: {_numbers(missing)}. Label every step of the list.",
            pointer="/steps",
        )
    if repeated := [step for step in listed if counts[step] > 1]:
        raise RewardError(f"These steps have several labels: {_numbers(repeated)}.", pointer="/steps")


def average_labels(agent_step: int, drawn: Sequence[tuple[LabelledStep, float]]) -> StepVerdict:
    """Of the samples of one step. Of labels that are equally frequent, the one nearest to the mean value."""
    values = [value for _, value in drawn]
    mean = statistics.fmean(values)
    counts = Counter(labelled.label for labelled, _ in drawn)
    most = max(counts.values())
    frequent = [labelled for labelled, _ in drawn if counts[labelled.label] == most]
    chosen = min(frequent, key=lambda labelled: abs(LABEL_VALUES[labelled.label] - mean))
    return StepVerdict(
        agent_step=agent_step,
        step=chosen.step,
        label=chosen.label,
        value=mean,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        reason=clip_reason(chosen.reason),
    )


def _numbers(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps))
