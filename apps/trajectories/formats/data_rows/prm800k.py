"""PRM800K: {"question": {"problem", "ground_truth_answer", "pre_generated_steps"?}, "label": {"steps": [{"completions":
[{"text", "rating"}], "human_completion", "chosen_completion"}], "finish_reason"}, "labeler", ...}.

The trajectory is the solution that was labelled: `pre_generated_steps` where there are any (phase 2), else at each step
the completion that was chosen or written by the labeler. An agent step for each; ratings and the alternatives are
metadata, and the ratings of the solution's own steps are feedback (`import_feedback --format prm800k`).
"""

from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import OUTCOME_READ, required_text, user_text
from apps.trajectories.formats.data_rows.solution_steps import stepwise_trajectory
from workers.schema import Trajectory, clean
from workers.schema.decode import convert, require_list, require_object

SIGN = "an object with a `question` that has a `problem`, and a `label` that has `steps`"
READ = (
    *OUTCOME_READ,
    "/question/problem",
    "/question/ground_truth_answer",
    "/question/pre_generated_steps",
)


@dataclass(frozen=True, slots=True)
class RatedStep:
    """rating: -1, 0 or 1; None where the step has none."""

    text: str
    rating: int | None


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    question, label = document.get("question"), document.get("label")
    return (
        isinstance(question, dict) and "problem" in question and isinstance(label, dict) and "steps" in label
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    question = require_object(row.get("question"), pointer="/question")
    answer = question.get("ground_truth_answer")
    known = ("problem", "pre_generated_steps", *(["ground_truth_answer"] if isinstance(answer, str) else []))
    return stepwise_trajectory(
        user_text(required_text(question, "problem")),
        [step.text for step in rated_steps(row)],
        row,
        known=("question",),
        pointer="/label/steps",
        reference=answer,
        metadata={"question": {name: value for name, value in question.items() if name not in known}},
    )


def rated_steps(row: dict[str, Any]) -> list[RatedStep]:
    """The steps of the solution that was labelled."""
    question = require_object(row.get("question"), pointer="/question")
    label = require_object(row.get("label"), pointer="/label")
    labelled = [
        _LabelledStep.read(step, f"/label/steps/{index}")
        for index, step in enumerate(require_list(label.get("steps"), pointer="/label/steps"))
    ]
    given = question.get("pre_generated_steps")
    if given:
        texts = convert(given, list[str], pointer="/question/pre_generated_steps")
        ratings = [
            step.rating_of(text) if step.human is None else None
            for step, text in zip(labelled, texts, strict=False)
        ]
        ratings += [None] * (len(texts) - len(ratings))
        return [RatedStep(text, rating) for text, rating in zip(texts, ratings, strict=True)]
    taken = [step.taken() for step in labelled]
    return [step for step in taken if step is not None]


@dataclass(frozen=True, slots=True)
class _LabelledStep:
    completions: list[RatedStep]
    human: str | None
    chosen: int | None

    @classmethod
    def read(cls, value: Any, pointer: str) -> "_LabelledStep":
        step = require_object(value, pointer=pointer)
        completions = []
        for index, each in enumerate(
            require_list(step.get("completions") or [], pointer=f"{pointer}/completions")
        ):
            at = f"{pointer}/completions/{index}"
            each = require_object(each, pointer=at)
            text = convert(each.get("text"), str, pointer=f"{at}/text")
            completions.append(
                RatedStep(text, convert(each.get("rating"), int | None, pointer=f"{at}/rating"))  # type: ignore[arg-type]
            )
        human = step.get("human_completion")
        if isinstance(human, dict):
            human = human.get("text")
        chosen = step.get("chosen_completion")
        is_place = isinstance(chosen, int) and not isinstance(chosen, bool) and 0 <= chosen < len(completions)
        return cls(completions, human if isinstance(human, str) else None, chosen if is_place else None)

    def rating_of(self, text: str) -> int | None:
        return next((each.rating for each in self.completions if each.text.strip() == text.strip()), None)

    def taken(self) -> RatedStep | None:
        """The step that the solution goes on with; none where the labeler chose none of several."""
        if self.chosen is not None:
            return self.completions[self.chosen]
        if self.human is not None:
            return RatedStep(self.human, None)
        return self.completions[0] if len(self.completions) == 1 else None
