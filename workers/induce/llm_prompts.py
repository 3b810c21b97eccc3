"""What is shown to a language model in an induction, and what it may answer: shapes, and checks of their content.

The names of the shapes are in the JSON schema of a question, and so in the key of its cached answer: renaming one asks
every question again. Each check raises RewardError with a sentence for the model, so that it can answer better.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from workers.errors import RewardError
from workers.induce.comment_points import MAX_POINT_LENGTH
from workers.induce.induction_files import Aspect, Comment
from workers.induce.step_features import summarize_action
from workers.prompts.templates import quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory

MAX_LLM_POINTS = 50  # of one comment
_MAX_NAME, _MAX_DEFINITION, _MAX_REASON = 100, 800, 600  # characters


@dataclass(frozen=True, slots=True)
class RenderedTrajectory:
    """A trajectory as prompts show it. behaviours: of each agent step, by its `step`."""

    name: str
    task: str
    text: str
    behaviours: Mapping[int, str]


@dataclass(slots=True)
class NamedMetric:
    """A metric with a name and a definition. rows: its aspects."""

    name: str
    definition: str
    rows: list[int]

    def to_prompt_line(self, number: int) -> str:
        return quoted({"metric": number, "name": self.name, "definition": self.definition})


class _Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer has to look like."""


class GroundedPoint(_Shape, frozen=True, kw_only=True):
    feedback: str
    sign: Literal[1, -1]
    step: int | None


class Grounded(_Shape, frozen=True, kw_only=True):
    points: list[GroundedPoint]


class Proposal(_Shape, frozen=True, kw_only=True):
    name: str
    definition: str
    points: list[int]


class Proposed(_Shape, frozen=True, kw_only=True):
    metrics: list[Proposal]


class Place(_Shape, frozen=True, kw_only=True):
    point: int
    metric: int | None


class Placed(_Shape, frozen=True, kw_only=True):
    places: list[Place]


class Finding(_Shape, frozen=True, kw_only=True):
    metric: int
    sign: Literal[1, 0, -1]
    step: int | None
    reason: str


class Judged(_Shape, frozen=True, kw_only=True):
    verdicts: list[Finding]


class Match(_Shape, frozen=True, kw_only=True):
    point: int
    finding: int


class Matched(_Shape, frozen=True, kw_only=True):
    matches: list[Match]


def render_trajectory(trajectory: Trajectory, comments: Sequence[Comment] = ()) -> RenderedTrajectory:
    """The steps that comments are anchored to are shown as fully as possible."""
    anchored = {
        step
        for comment in comments
        if comment.steps
        for step in range(comment.steps[0], comment.steps[1] + 1)
    }
    steps = {step: summarize_action(trajectory.steps[step]) for step in trajectory.agent_steps}
    text = shown(trajectory, closely=anchored)
    return RenderedTrajectory(str(trajectory.id), trajectory.task.id, text, steps)


def candidate_steps(comment: Comment, trajectory: RenderedTrajectory) -> list[int]:
    """Steps of the agent that the comment may be about: within its anchor, unless the agent took none there."""
    steps = list(trajectory.behaviours)
    if comment.steps is None:
        return steps
    return [step for step in steps if comment.steps[0] <= step <= comment.steps[1]] or steps


def format_points(aspects: Sequence[Aspect], rows: Sequence[int]) -> str:
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


def check_points(answer: Grounded, comment: Comment, steps: Sequence[int]) -> None:
    if len(answer.points) > MAX_LLM_POINTS:
        raise RewardError(
            f"It gives {len(answer.points)} points; give at most {MAX_LLM_POINTS}, the clearest."
        )
    comment_words, seen = _plain(comment.text), set[tuple[str, int]]()
    for number, point in enumerate(answer.points):
        words = _plain(point.feedback)
        if not words or words not in comment_words:
            raise RewardError(f"The feedback of point {number} is not in the comment; copy its words.")
        if len(point.feedback) > MAX_POINT_LENGTH:
            raise RewardError(
                f"The feedback of point {number} has over {MAX_POINT_LENGTH} characters; take it apart."
            )
        if (words, point.sign) in seen:
            raise RewardError(f"Point {number} is given twice.")
        seen.add((words, point.sign))
        if (point.step is None) != (not steps) or (point.step is not None and point.step not in steps):
            raise RewardError(f"Point {number} is about step {point.step}, which is none of those listed.")
    if comment.sign and len(answer.points) == 1 and answer.points[0].sign != comment.sign:
        raise RewardError("The writer marked the comment otherwise than the sign of its only point.")


def check_verdicts(answer: Judged, count: int, steps: Sequence[int]) -> None:
    if sorted(verdict.metric for verdict in answer.verdicts) != list(range(count)):
        raise RewardError(f"Give every metric from 0 to {count - 1} once.")
    for verdict in answer.verdicts:
        if not verdict.sign:
            continue
        if steps and verdict.step not in steps:
            raise RewardError(
                f"Metric {verdict.metric} is shown by step {verdict.step}, which the agent did not take."
            )
        if not steps and verdict.step is not None:
            raise RewardError("The agent took no step; give null.")
        if not 1 <= len(verdict.reason.strip()) <= _MAX_REASON:
            raise RewardError(
                f"The reason of metric {verdict.metric} has none or over {_MAX_REASON} characters."
            )


def check_proposals(answer: Proposed, most: int, shown: int, known: Collection[str]) -> None:
    """most: metrics. shown: points. known: names that are taken."""
    if not 1 <= len(answer.metrics) <= most:
        raise RewardError(f"It gives {len(answer.metrics)} metrics; from 1 to {most} are asked for.")
    given, taken = {name.casefold() for name in known}, set[int]()
    for metric in answer.metrics:
        name = " ".join(metric.name.split())
        if not 1 <= len(name) <= _MAX_NAME or name.casefold() in given:
            raise RewardError(f"The name {name[:_MAX_NAME]!r} is empty, too long or there already.")
        if not 1 <= len(metric.definition.strip()) <= _MAX_DEFINITION:
            raise RewardError(
                f"A definition has 1 to {_MAX_DEFINITION} characters; that of {name!r} has not."
            )
        wrong = [point for point in metric.points if not 0 <= point < shown or point in taken]
        if wrong or not metric.points or len(set(metric.points)) < len(metric.points):
            raise RewardError(
                f"The points of {name!r} are none, not there, or another metric's: {wrong[:5]}."
            )
        given.add(name.casefold())
        taken.update(metric.points)


def check_places(answer: Placed, points: int, metrics: int) -> None:
    if sorted(place.point for place in answer.places) != list(range(points)):
        raise RewardError(f"Give every point from 0 to {points - 1} once.")
    if any(place.metric is not None and not 0 <= place.metric < metrics for place in answer.places):
        raise RewardError(f"There are metrics from 0 to {metrics - 1}, or null.")


def check_matches(answer: Matched, points: Sequence[int], findings: Sequence[int]) -> None:
    """points, findings: the sign of each."""
    for match in answer.matches:
        if not (0 <= match.point < len(points) and 0 <= match.finding < len(findings)):
            raise RewardError(f"There is no point {match.point} or no finding {match.finding}.")
        if points[match.point] != findings[match.finding]:
            raise RewardError(f"Point {match.point} and finding {match.finding} differ in sign.")


def _plain(text: str) -> str:
    """Without what copying changes: case, white space, curly quotes."""
    text = text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xA0: " "})
    return " ".join(text.casefold().split())
