"""The questions of an induction by a language model, and what is made of the answers.

Nothing counts that was made up: a point is in the comment's own words, a step is one the agent took, a verdict is
matched only to a point of its sign (workers.induce.llm_prompts); an answer that breaks this is asked for again. What
has no answer in the end is listed, and left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from workers.errors import RewardError
from workers.induce.induction_files import Aspect, Comment, Trait
from workers.induce.llm_prompts import (
    Grounded,
    Judged,
    Matched,
    NamedMetric,
    Placed,
    Proposed,
    RenderedTrajectory,
    candidate_steps,
    check_matches,
    check_places,
    check_points,
    check_proposals,
    check_verdicts,
    format_points,
)
from workers.induce.metric_report import MetaMetrics, compute_meta_metrics
from workers.llm.client import LLMClient, NoAnswer
from workers.prompts.templates import prompt, quoted

T = TypeVar("T")
MAX_SHOWN_POINTS = 200  # points that metrics are proposed from; the others are put to them afterwards
_POINTS_PER_QUESTION = 40  # points in one question
_MAX_COMMENT_LENGTH = 12_000  # characters of a comment that are shown


class InductionQuestions:
    """The questions of an induction. failed, left_out: comments and trajectories, and why."""

    def __init__(self, model: LLMClient, seed: int) -> None:
        self.model, self.seed = model, seed
        self.failed: list[dict[str, str]] = []
        self.left_out: list[dict[str, str]] = []

    def ground(
        self, comments: Sequence[Comment], trajectories: Mapping[str, RenderedTrajectory]
    ) -> list[Aspect]:
        """The points of every comment, in the order of the comments."""
        known = [comment for comment in comments if comment.trajectory in trajectories]
        self.left_out += [
            {"comment": comment.id, "why": "its trajectory was deleted"}
            for comment in comments
            if comment.trajectory not in trajectories
        ]
        found: dict[str, list[Aspect]] = {}

        def ask(comment: Comment) -> Grounded:
            trajectory = trajectories[comment.trajectory]
            steps = candidate_steps(comment, trajectory)
            sign_note = (
                f"Its writer marked it as {'praise' if comment.sign > 0 else 'blame'}."
                if comment.sign
                else ""
            )
            question = prompt(
                "ground",
                trajectory=trajectory.text,
                steps=quoted(steps),
                comment=quoted(comment.text[:_MAX_COMMENT_LENGTH]),
                signed=sign_note,
            )
            about = {"comment": comment.id, "trajectory": comment.trajectory}
            return self.model.ask(
                question, Grounded, lambda answer: check_points(answer, comment, steps), about=about
            )

        for comment, answer in self.model.each(known, ask):
            if isinstance(answer, NoAnswer):
                self._record_failure("comment", comment.id, answer)
                continue
            if not answer.points:
                self.left_out.append({"comment": comment.id, "why": "it neither praises nor blames"})
            trajectory = trajectories[comment.trajectory]
            found[comment.id] = [
                Aspect(
                    trajectory=comment.trajectory,
                    behaviour=trajectory.behaviours.get(point.step, "") if point.step is not None else "",
                    feedback=" ".join(point.feedback.split()),
                    sign=point.sign,
                    step=point.step,
                    comment=comment.id,
                )
                for point in answer.points
            ]
        return [aspect for comment in comments for aspect in found.get(comment.id, ())]

    def propose(
        self, aspects: Sequence[Aspect], rows: Sequence[int], count: int, known: Sequence[NamedMetric]
    ) -> list[NamedMetric]:
        """At most `count` metrics; aspects that were not shown are put to them afterwards. Raises RewardError."""
        sampled = _sample_distinct(rows, aspects, MAX_SHOWN_POINTS, self.seed)
        names = [metric.name for metric in known]
        question = prompt(
            "propose",
            count=str(count),
            known=quoted(names),
            points=format_points(aspects, sampled),
        )
        try:
            answer = self.model.ask(
                question, Proposed, lambda answer: check_proposals(answer, count, len(sampled), names)
            )
        except NoAnswer as error:  # without this one there is no induction
            raise RewardError(f"No metrics could be proposed. {error.message}") from error
        metrics = [
            NamedMetric(
                " ".join(proposal.name.split()),
                proposal.definition.strip(),
                [sampled[point] for point in proposal.points],
            )
            for proposal in answer.metrics
        ]
        shown_rows = set(sampled)
        self.place(aspects, metrics, [row for row in rows if row not in shown_rows])
        return metrics

    def place(
        self, aspects: Sequence[Aspect], metrics: Sequence[NamedMetric], rows: Sequence[int] | None = None
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
        metric_lines = "\n".join(metric.to_prompt_line(number) for number, metric in enumerate(metrics))

        def ask(batch: tuple[int, ...]) -> Placed:
            question = prompt("place", metrics=metric_lines, points=format_points(aspects, batch))
            return self.model.ask(
                question, Placed, lambda answer: check_places(answer, len(batch), len(metrics))
            )

        for batch, answer in self.model.each(batched(left, _POINTS_PER_QUESTION), ask):
            if isinstance(answer, NoAnswer):
                for comment in sorted({aspects[row].comment for row in batch}):
                    self._record_failure("comment", comment, answer)
                continue
            for place in answer.places:
                if place.metric is not None:
                    metrics[place.metric].rows.append(batch[place.point])
        for metric in metrics:
            metric.rows.sort()

    def judge(
        self, trajectories: Sequence[RenderedTrajectory], metrics: Sequence[NamedMetric]
    ) -> dict[str, list[Trait]]:
        """By the name of each trajectory that has an answer, a trait for each metric, in their order."""
        metric_lines = "\n".join(metric.to_prompt_line(number) for number, metric in enumerate(metrics))

        def ask(trajectory: RenderedTrajectory) -> Judged:
            steps = list(trajectory.behaviours)
            question = prompt("judge", metrics=metric_lines, steps=quoted(steps), trajectory=trajectory.text)
            return self.model.ask(
                question,
                Judged,
                lambda answer: check_verdicts(answer, len(metrics), steps),
                about={"trajectory": trajectory.name},
            )

        found: dict[str, list[Trait]] = {}
        for trajectory, answer in self.model.each(trajectories, ask):
            if isinstance(answer, NoAnswer):
                self._record_failure("trajectory", trajectory.name, answer)
                continue
            found[trajectory.name] = [
                Trait(
                    trajectory=trajectory.name,
                    metric=metrics[verdict.metric].name,
                    sign=verdict.sign,
                    step=verdict.step if verdict.sign else None,
                    reason=" ".join(verdict.reason.split()) if verdict.sign else "",
                )
                for verdict in sorted(answer.verdicts, key=lambda verdict: verdict.metric)
            ]
        return found

    def match_to_verdicts(
        self,
        rows: Sequence[int],
        aspects: Sequence[Aspect],
        traits: Mapping[str, Sequence[Trait]],
    ) -> tuple[MetaMetrics, set[int]]:
        """How well the traits of their trajectories cover these aspects, and which aspects are covered."""
        rows_by_trajectory: dict[str, list[int]] = {}
        for row in rows:
            if aspects[row].trajectory in traits:
                rows_by_trajectory.setdefault(aspects[row].trajectory, []).append(row)

        def ask(name: str) -> Matched:
            found = [trait for trait in traits[name] if trait.sign]
            own = rows_by_trajectory[name]
            if not found:
                return Matched(matches=[])

            findings = [
                quoted({"finding": n, "metric": trait.metric, "sign": trait.sign, "reason": trait.reason})
                for n, trait in enumerate(found)
            ]
            question = prompt("match", points=format_points(aspects, own), findings="\n".join(findings))
            signs = [aspects[row].sign for row in own], [trait.sign for trait in found]
            return self.model.ask(
                question, Matched, lambda answer: check_matches(answer, *signs), about={"trajectory": name}
            )

        kept: list[int] = []
        flat: list[Trait] = []
        matches: dict[int, set[int]] = {}
        for name, answer in self.model.each(sorted(rows_by_trajectory), ask):
            if isinstance(answer, NoAnswer):
                self._record_failure("trajectory", name, answer)
                continue
            at, start = len(kept), len(flat)
            kept += rows_by_trajectory[name]
            flat += [trait for trait in traits[name] if trait.sign]
            for match in answer.matches:
                matches.setdefault(at + match.point, set()).add(start + match.finding)
        meta = compute_meta_metrics([aspects[row] for row in kept], flat, matches)
        return meta, {kept[place] for place, met in matches.items() if met}

    def forget_failed_trajectories(self) -> None:
        """They are judged again."""
        self.failed = [failure for failure in self.failed if "trajectory" not in failure]

    def _record_failure(self, what: str, name: str, error: NoAnswer) -> None:
        if all(failure.get(what) != name for failure in self.failed):
            self.failed.append({what: name, "why": error.message})


def _sample_distinct(rows: Sequence[int], aspects: Sequence[Aspect], most: int, seed: int) -> list[int]:
    """At most `most` rows, one of each distinct text and sign."""
    first: dict[tuple[str, int], int] = {}
    for row in rows:
        first.setdefault((aspects[row].feedback, aspects[row].sign), row)
    distinct = list(first.values())
    if len(distinct) <= most:
        return distinct
    return sorted(np.random.default_rng(seed).choice(distinct, most, replace=False).tolist())


def sample_trajectories(rows: Sequence[int], aspects: Sequence[Aspect], most: int, seed: int) -> list[int]:
    """The aspects of at most `most` trajectories."""
    names = sorted({aspects[row].trajectory for row in rows})
    if len(names) > most:
        names = np.random.default_rng(seed).choice(names, most, replace=False).tolist()
    kept = set(names)
    return [row for row in rows if aspects[row].trajectory in kept]


def batched(things: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    left = iter(things)
    while batch := tuple(islice(left, size)):
        yield batch
