"""The questions of an induction by a language model, and what is made of the answers.

Nothing counts that was made up: a point is in the comment's own words, a step is one the agent took, a finding is
matched only to a point of its sign (workers.induce.answers); an answer that breaks this is asked for again. What has no
answer in the end is listed, and left out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from workers.errors import RewardError
from workers.induce.answers import (
    Grounded,
    Judged,
    Matched,
    Placed,
    Proposed,
    check_findings,
    check_matches,
    check_places,
    check_points,
    check_proposals,
)
from workers.induce.evidence import Comment
from workers.induce.grounding import behaviour
from workers.induce.meta import Aspect, Meta, Trait, meta_metrics
from workers.llm.client import LLMClient, NoAnswer
from workers.prompts.templates import prompt, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory

A = TypeVar("A")
MOST_SHOWN = 200  # points that metrics are proposed from; the others are put to them afterwards
_PLACED = 40  # points in one question
_COMMENT = 12_000  # characters of a comment that are shown


@dataclass(frozen=True, slots=True)
class Run:
    """What is remembered of a trajectory. behaviours: of each agent step, by its `step`."""

    name: str
    task: str
    text: str
    behaviours: Mapping[int, str]


@dataclass(slots=True)
class Named:
    """A metric in words. rows: its aspects."""

    name: str
    definition: str
    rows: list[int]

    def told(self, number: int) -> str:
        return quoted({"metric": number, "name": self.name, "definition": self.definition})


class Questions:
    """The questions of an induction. failed, left_out: comments and trajectories, and why."""

    def __init__(self, model: LLMClient, seed: int) -> None:
        self.model, self.seed = model, seed
        self.failed: list[dict[str, str]] = []
        self.left_out: list[dict[str, str]] = []

    def ground(self, comments: Sequence[Comment], runs: Mapping[str, Run]) -> list[Aspect]:
        """The points of every comment, in the order of the comments."""
        there = [comment for comment in comments if comment.trajectory in runs]
        self.left_out += [
            {"comment": comment.id, "why": "its trajectory was deleted"}
            for comment in comments
            if comment.trajectory not in runs
        ]
        found: dict[str, list[Aspect]] = {}

        def ask(comment: Comment) -> Grounded:
            run = runs[comment.trajectory]
            steps = possible_steps(comment, run)
            signed = (
                f"Its writer marked it as {'praise' if comment.sign > 0 else 'blame'}."
                if comment.sign
                else ""
            )
            question = prompt(
                "ground",
                trajectory=run.text,
                steps=quoted(steps),
                comment=quoted(comment.text[:_COMMENT]),
                signed=signed,
            )
            about = {"comment": comment.id, "trajectory": comment.trajectory}
            return self.model.ask(
                question, Grounded, lambda answer: check_points(answer, comment, steps), about=about
            )

        for comment, answer in self.model.each(there, ask):
            if isinstance(answer, NoAnswer):
                self._fail("comment", comment.id, answer)
                continue
            if not answer.points:
                self.left_out.append({"comment": comment.id, "why": "it neither praises nor blames"})
            run = runs[comment.trajectory]
            found[comment.id] = [
                Aspect(
                    trajectory=comment.trajectory,
                    behaviour=run.behaviours.get(point.step, "") if point.step is not None else "",
                    feedback=" ".join(point.feedback.split()),
                    sign=point.sign,
                    step=point.step,
                    comment=comment.id,
                )
                for point in answer.points
            ]
        return [aspect for comment in comments for aspect in found.get(comment.id, ())]

    def propose(
        self, aspects: Sequence[Aspect], rows: Sequence[int], count: int, known: Sequence[Named]
    ) -> list[Named]:
        """At most `count` metrics of these aspects, those that were not shown put to them. Raises RewardError."""
        spoken = _spread(rows, aspects, MOST_SHOWN, self.seed)
        names = [metric.name for metric in known]
        question = prompt(
            "propose",
            count=str(count),
            known=quoted(names),
            points=_points(aspects, spoken),
        )
        try:
            answer = self.model.ask(
                question, Proposed, lambda answer: check_proposals(answer, count, len(spoken), names)
            )
        except NoAnswer as error:  # without this one there is no induction
            raise RewardError(f"No metrics could be proposed. {error.message}") from error
        metrics = [
            Named(" ".join(one.name.split()), one.definition.strip(), [spoken[point] for point in one.points])
            for one in answer.metrics
        ]
        shown_rows = set(spoken)
        self.place(aspects, metrics, [row for row in rows if row not in shown_rows])
        return metrics

    def place(
        self, aspects: Sequence[Aspect], metrics: Sequence[Named], rows: Sequence[int] | None = None
    ) -> None:
        """Put points to the metrics they are about. rows: those, or all that are in none and were not asked about."""
        placed = {row for metric in metrics for row in metric.rows}
        rows = [row for row in (range(len(aspects)) if rows is None else rows) if row not in placed]
        same = {
            (aspects[row].feedback, aspects[row].sign): metric for metric in metrics for row in metric.rows
        }
        left = []
        for row in rows:
            known = same.get((aspects[row].feedback, aspects[row].sign))
            if known is None:
                left.append(row)
            else:
                known.rows.append(row)
        told = "\n".join(metric.told(number) for number, metric in enumerate(metrics))

        def ask(batch: tuple[int, ...]) -> Placed:
            question = prompt("place", metrics=told, points=_points(aspects, batch))
            return self.model.ask(
                question, Placed, lambda answer: check_places(answer, len(batch), len(metrics))
            )

        for batch, answer in self.model.each(parts_of(left, _PLACED), ask):
            if isinstance(answer, NoAnswer):
                for comment in sorted({aspects[row].comment for row in batch}):
                    self._fail("comment", comment, answer)
                continue
            for one in answer.places:
                if one.metric is not None:
                    metrics[one.metric].rows.append(batch[one.point])
        for metric in metrics:
            metric.rows.sort()

    def judge(self, runs: Sequence[Run], metrics: Sequence[Named]) -> dict[str, list[Trait]]:
        """By the name of each run that has an answer, a trait for each metric, in their order."""
        told = "\n".join(metric.told(number) for number, metric in enumerate(metrics))

        def ask(run: Run) -> Judged:
            steps = list(run.behaviours)
            question = prompt("judge", metrics=told, steps=quoted(steps), trajectory=run.text)
            return self.model.ask(
                question,
                Judged,
                lambda answer: check_findings(answer, len(metrics), steps),
                about={"trajectory": run.name},
            )

        found: dict[str, list[Trait]] = {}
        for run, answer in self.model.each(runs, ask):
            if isinstance(answer, NoAnswer):
                self._fail("trajectory", run.name, answer)
                continue
            found[run.name] = [
                Trait(
                    trajectory=run.name,
                    metric=metrics[one.metric].name,
                    sign=one.sign,
                    step=one.step if one.sign else None,
                    reason=" ".join(one.reason.split()) if one.sign else "",
                )
                for one in sorted(answer.verdicts, key=lambda one: one.metric)
            ]
        return found

    def held_against(
        self,
        rows: Sequence[int],
        aspects: Sequence[Aspect],
        traits: Mapping[str, Sequence[Trait]],
    ) -> tuple[Meta, set[int]]:
        """How these aspects are covered by what was judged on their trajectories; which of them are."""
        by: dict[str, list[int]] = {}
        for row in rows:
            if aspects[row].trajectory in traits:
                by.setdefault(aspects[row].trajectory, []).append(row)

        def ask(name: str) -> Matched:
            found = [trait for trait in traits[name] if trait.sign]
            mine = by[name]
            if not found:
                return Matched(matches=[])

            findings = [
                quoted({"finding": n, "metric": one.metric, "sign": one.sign, "reason": one.reason})
                for n, one in enumerate(found)
            ]
            question = prompt("match", points=_points(aspects, mine), findings="\n".join(findings))
            signs = [aspects[row].sign for row in mine], [one.sign for one in found]
            return self.model.ask(
                question, Matched, lambda answer: check_matches(answer, *signs), about={"trajectory": name}
            )

        kept: list[int] = []
        flat: list[Trait] = []
        matches: dict[int, set[int]] = {}
        for name, answer in self.model.each(sorted(by), ask):
            if isinstance(answer, NoAnswer):
                self._fail("trajectory", name, answer)
                continue
            at, start = len(kept), len(flat)
            kept += by[name]
            flat += [trait for trait in traits[name] if trait.sign]
            for one in answer.matches:
                matches.setdefault(at + one.point, set()).add(start + one.finding)
        meta = meta_metrics([aspects[row] for row in kept], flat, matches)
        return meta, {kept[place] for place, met in matches.items() if met}

    def forget_runs(self) -> None:
        """Take failures on trajectories back: they are judged again."""
        self.failed = [one for one in self.failed if "trajectory" not in one]

    def _fail(self, what: str, name: str, error: NoAnswer) -> None:
        if all(one.get(what) != name for one in self.failed):
            self.failed.append({what: name, "why": error.message})


def run_of(trajectory: Trajectory, closely: Collection[int] = ()) -> Run:
    steps = {step: behaviour(trajectory.steps[step]) for step in trajectory.agent_steps}
    return Run(str(trajectory.id), trajectory.task.id, shown(trajectory, closely=closely), steps)


def possible_steps(comment: Comment, run: Run) -> list[int]:
    """Steps of the agent that the comment may be about: within its anchor, unless the agent took none there."""
    steps = list(run.behaviours)
    if comment.steps is None:
        return steps
    return [step for step in steps if comment.steps[0] <= step <= comment.steps[1]] or steps


def _points(aspects: Sequence[Aspect], rows: Sequence[int]) -> str:
    return "\n".join(
        quoted(
            {
                "point": number,
                "sign": aspects[row].sign,
                "feedback": aspects[row].feedback,
                "the agent did": aspects[row].behaviour,
            }
        )
        for number, row in enumerate(rows)
    )


def _spread(rows: Sequence[int], aspects: Sequence[Aspect], most: int, seed: int) -> list[int]:
    """At most so many, one of each that say the same."""
    first: dict[tuple[str, int], int] = {}
    for row in rows:
        first.setdefault((aspects[row].feedback, aspects[row].sign), row)
    distinct = list(first.values())
    if len(distinct) <= most:
        return distinct
    return sorted(np.random.default_rng(seed).choice(distinct, most, replace=False).tolist())


def parts_of(things: Iterable[A], size: int) -> Iterator[tuple[A, ...]]:
    left = iter(things)
    while part := tuple(islice(left, size)):
        yield part
