"""`prm800k`: ratings of the steps of a solution: -1 bad, 0 neutral, 1 good. `math-shepherd`: good and bad steps."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader
from apps.annotation.feedback_types.step import StepValue
from apps.trajectories.formats.data_rows import math_shepherd, prm800k
from apps.trajectories.formats.data_rows.math_shepherd import question_and_steps, step_labels
from apps.trajectories.formats.data_rows.prm800k import rated_steps
from workers.errors import InvalidRecord

_LABELS = {-1: "bad", 0: "neutral", 1: "good"}


def _incoming(places: Places, labels: dict[int, str], annotator: str) -> Incoming:
    value = StepValue(labels=labels, corrections={})
    return Incoming(kind="step", task=places[0].task, places=places, annotator=annotator, value=value)


def _ratings(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    labels: dict[int, str] = {}
    for index, step in enumerate(rated_steps(row)):
        if step.rating is None:
            continue
        if step.rating not in _LABELS:
            raise InvalidRecord(
                f"a rating is -1, 0 or 1, not {step.rating}.", pointer=f"/label/steps/{index}"
            )
        labels[index] = _LABELS[step.rating]
    if not labels:
        raise InvalidRecord("no step of the solution is rated; leave the row out.", pointer="/label/steps")
    labeler = row.get("labeler")
    yield _incoming(places, labels, labeler[:254] if isinstance(labeler, str) and labeler else "prm800k")


def _tags(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    _, steps = question_and_steps(row)
    labels = {
        index: "good" if good else "bad" for index, good in enumerate(step_labels(row)) if index < len(steps)
    }
    yield _incoming(places, labels, "math-shepherd")


read_prm800k = answer_reader(
    prm800k,
    _ratings,
    (
        "/labeler",
        *(f"/label/steps/*/completions/*/{name}" for name in ("rating", "text")),
        "/label/steps/*/chosen_completion",
    ),
)
read_math_shepherd = answer_reader(math_shepherd, _tags, ("/label",))
