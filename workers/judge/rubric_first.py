"""A judge that first writes a rubric for the task, and then judges by it.

As RM-R1 does for comparisons (https://arxiv.org/abs/2505.02387, its "chain of rubrics"). The rubric is written from the
task and what precedes the first agent step, never from what the agent did, so that all trajectories of a task are
judged by the same one: the call is made once for each task, and its answer is kept with the others.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from workers.errors import RewardError
from workers.judge.aggregation import CriterionComparison, CriterionScore
from workers.judge.rubric import COMPARE, SCORE, Criterion, RubricJudge
from workers.llm.client import LLMClient
from workers.prompts.pictures import view_trajectory
from workers.prompts.templates import prompt, quoted
from workers.schema import Trajectory

RUBRIC_FIRST = "rubric_first"  # the approach
WRITE, MOST_ITEMS, LONGEST_ITEM, MOST_WEIGHT = "write_rubric", 8, 400, 3
_BY_RUBRIC = {SCORE: "score_by_items", COMPARE: "compare_by_items"}  # the prompts, version 1


class RubricItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a good trajectory of the task does. weight: 1 to MOST_WEIGHT."""

    item: str
    weight: int


class WrittenRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    items: list[RubricItem]


class RubricFirstJudge(RubricJudge):
    """Thread-safe. items: the rubric of the trajectory's task where the caller has it from `write_items` already."""

    def __init__(self, model: LLMClient, criteria: Sequence[Criterion], **options: Any) -> None:
        super().__init__(model, criteria, **options)
        self._lock, self._writing = threading.Lock(), dict[str, threading.Lock]()

    def write_items(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> list[RubricItem]:
        """The rubric for the task of this trajectory. Trajectories of one task wait for the first answer, so that they
        get the same rubric. Raises NoAnswer, RewardError."""
        first = next(
            (index for index, step in enumerate(run.steps) if step.source == "agent"), len(run.steps)
        )
        view = view_trajectory(replace(run, steps=run.steps[:first]), self._pictures)
        criteria = self._criterion_lines(scale=False)
        question = prompt(
            WRITE,
            guidelines=self._guidelines,
            criteria=criteria,
            opening=view.text,
        ).showing(view.pictures("the opening"))
        key = "\0".join([view.text, *(picture.key for picture in question.pictures)])
        with self._lock:
            writing = self._writing.setdefault(key, threading.Lock())
        with writing:
            return self.model.ask(question, WrittenRubric, check_items, about=about).items

    def score(
        self,
        run: Trajectory,
        *,
        about: Mapping[str, str] | None = None,
        items: Sequence[RubricItem] | None = None,
    ) -> list[CriterionScore]:
        known = self.write_items(run, about=about) if items is None else items
        view = view_trajectory(run, self._pictures)
        question = self._question(_BY_RUBRIC[SCORE], scale=True, items=_lines(known), run=view.text).showing(
            view.pictures()
        )
        return self._score_by(question, run, about)

    def compare(
        self,
        a: Trajectory,
        b: Trajectory,
        *,
        about: Mapping[str, str] | None = None,
        items: Sequence[RubricItem] | None = None,
    ) -> list[CriterionComparison]:
        known = _lines(self.write_items(a, about=about) if items is None else items)
        name, (view_a, view_b) = _BY_RUBRIC[COMPARE], self._views(a, b)
        both = (
            self._of_two(name, view_a, view_b, {"items": known}),
            self._of_two(name, view_b, view_a, {"items": known}),
        )
        return self._compare_by(lambda draw: both, (len(a.steps), len(b.steps)), about)


def check_items(written: WrittenRubric) -> None:
    """Raises RewardError."""
    if not 1 <= len(written.items) <= MOST_ITEMS:
        raise RewardError(
            f"The rubric has {len(written.items)} items; write 1 to {MOST_ITEMS}.", pointer="/items"
        )
    for place, item in enumerate(written.items):
        if not 1 <= len(item.item.strip()) <= LONGEST_ITEM:
            raise RewardError(f"An item has 1 to {LONGEST_ITEM} characters.", pointer=f"/items/{place}/item")
        if not 1 <= item.weight <= MOST_WEIGHT:
            raise RewardError(f"A weight is from 1 to {MOST_WEIGHT}.", pointer=f"/items/{place}/weight")


def _lines(items: Sequence[RubricItem]) -> str:
    return "\n".join(quoted({"item": item.item, "weight": item.weight}) for item in items)
