"""`who-and-when`: failed trajectories of several agents, with the decisive turn and the reason.

`mistake_step` counts the turns of `history` from 0, as text. Where it names a turn that no agent took (the task as it
was handed out, what a terminal answered), the first error is the agent's turn before it, or the first there is.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trajectory_files import read_trajectory_files, step_of
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.step import StepValue
from apps.core.number_parsing import whole_number
from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.formats.benchmarks import who_and_when
from workers.errors import InvalidRecord
from workers.schema import Anchor
from workers.schema.decode import optional_str

_FIELDS = RowFields(PathPatterns([*who_and_when.READ, "/mistake_agent", "/mistake_step", "/mistake_reason"]))
_ANNOTATOR = "who-and-when"


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_trajectory_files(stream, parse, _FIELDS)


def parse(document: dict[str, Any]) -> Iterator[Incoming]:
    run = who_and_when.read(document)
    said = document.get("mistake_step")
    turn = whole_number(said)
    if turn is None or turn >= len(run.steps):
        raise InvalidRecord(
            f"mistake_step {str(said)[:100]} is not a turn of the history; turns are 0 to {len(run.steps) - 1}.",
            pointer="/mistake_step",
        )
    step = step_of(run, turn)
    before = [number for number, place in enumerate(run.agent_steps) if place <= step]
    first = before[-1] if before else 0
    common: dict[str, Any] = {"task": run.task, "places": (run,), "annotator": _ANNOTATOR}
    marked = StepValue(labels={}, corrections={}, has_first_error=True, first_error=first)
    yield Incoming(kind="step", value=marked, **common)
    if reason := optional_str(document.get("mistake_reason"), pointer="/mistake_reason"):
        value = CommentValue(text=reason, sign=-1, anchor=Anchor(steps=(step, step)))
        yield Incoming(kind="comment", value=value, **common)
