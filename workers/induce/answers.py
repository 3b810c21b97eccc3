"""What a language model may answer: shapes, and what no answer of a shape may say.

Each check raises RewardError with a sentence that the model is told, so that it can answer better.
"""

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from workers.errors import RewardError
from workers.induce.evidence import Comment
from workers.induce.points import LONGEST

MOST_POINTS = 50  # of one comment
_NAME, _DEFINITION, _REASON = 100, 800, 600  # characters


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


def check_points(answer: Grounded, comment: Comment, steps: Sequence[int]) -> None:
    if len(answer.points) > MOST_POINTS:
        raise RewardError(f"It gives {len(answer.points)} points; give at most {MOST_POINTS}, the clearest.")
    said, seen = _plain(comment.text), set[tuple[str, int]]()
    for number, point in enumerate(answer.points):
        words = _plain(point.feedback)
        if not words or words not in said:
            raise RewardError(f"The feedback of point {number} is not in the comment; copy its words.")
        if len(point.feedback) > LONGEST:
            raise RewardError(f"The feedback of point {number} has over {LONGEST} characters; take it apart.")
        if (words, point.sign) in seen:
            raise RewardError(f"Point {number} is given twice.")
        seen.add((words, point.sign))
        if (point.step is None) != (not steps) or (point.step is not None and point.step not in steps):
            raise RewardError(f"Point {number} is about step {point.step}, which is none of those listed.")
    if comment.sign and len(answer.points) == 1 and answer.points[0].sign != comment.sign:
        raise RewardError("The writer marked the comment otherwise than the sign of its only point.")


def check_findings(answer: Judged, count: int, steps: Sequence[int]) -> None:
    if sorted(one.metric for one in answer.verdicts) != list(range(count)):
        raise RewardError(f"Give every metric from 0 to {count - 1} once.")
    for one in answer.verdicts:
        if not one.sign:
            continue
        if steps and one.step not in steps:
            raise RewardError(
                f"Metric {one.metric} is shown by step {one.step}, which the agent did not take."
            )
        if not steps and one.step is not None:
            raise RewardError("The agent took no step; give null.")
        if not 1 <= len(one.reason.strip()) <= _REASON:
            raise RewardError(f"The reason of metric {one.metric} has none or over {_REASON} characters.")


def check_proposals(answer: Proposed, most: int, shown: int, known: Collection[str]) -> None:
    """most: metrics. shown: points. known: names that are taken."""
    if not 1 <= len(answer.metrics) <= most:
        raise RewardError(f"It gives {len(answer.metrics)} metrics; from 1 to {most} are asked for.")
    given, taken = {name.casefold() for name in known}, set[int]()
    for metric in answer.metrics:
        name = " ".join(metric.name.split())
        if not 1 <= len(name) <= _NAME or name.casefold() in given:
            raise RewardError(f"The name {name[:_NAME]!r} is empty, too long or there already.")
        if not 1 <= len(metric.definition.strip()) <= _DEFINITION:
            raise RewardError(f"A definition has 1 to {_DEFINITION} characters; that of {name!r} has not.")
        wrong = [point for point in metric.points if not 0 <= point < shown or point in taken]
        if wrong or not metric.points or len(set(metric.points)) < len(metric.points):
            raise RewardError(
                f"The points of {name!r} are none, not there, or another metric's: {wrong[:5]}."
            )
        given.add(name.casefold())
        taken.update(metric.points)


def check_places(answer: Placed, points: int, metrics: int) -> None:
    if sorted(one.point for one in answer.places) != list(range(points)):
        raise RewardError(f"Give every point from 0 to {points - 1} once.")
    if any(one.metric is not None and not 0 <= one.metric < metrics for one in answer.places):
        raise RewardError(f"There are metrics from 0 to {metrics - 1}, or null.")


def check_matches(answer: Matched, points: Sequence[int], findings: Sequence[int]) -> None:
    """points, findings: the sign of each."""
    for one in answer.matches:
        if not (0 <= one.point < len(points) and 0 <= one.finding < len(findings)):
            raise RewardError(f"There is no point {one.point} or no finding {one.finding}.")
        if points[one.point] != findings[one.finding]:
            raise RewardError(f"Point {one.point} and finding {one.finding} differ in sign.")


def _plain(text: str) -> str:
    """Without what copying changes: case, white space, curly quotes."""
    text = text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xA0: " "})
    return " ".join(text.casefold().split())
