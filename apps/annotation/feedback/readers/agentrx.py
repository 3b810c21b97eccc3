"""`agentrx`: failures in tau-bench trajectories: {"trajectory_id", "failures": [...], "root_cause", "failure_summary"}.

The runs are in a file of their own, and come before: `cat tau_dataset_full.json tau_ground_truth.json`, or an archive
of both. `step_number` counts messages from 1. A failure at an agent's step marks it bad; one on the user's side is told
as a comment alone.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trajectory_files import read_trajectory_files, step_of
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.step import StepValue
from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.formats.benchmarks import agentrx
from workers.errors import InvalidRecord
from workers.schema import Anchor, Trajectory
from workers.schema.decode import optional_str, require_list, require_object

_FIELDS = RowFields(
    PathPatterns(
        [
            "/trajectory_id",
            "/failure_summary",
            *(f"/failures/*/{name}" for name in ("step_number", "failure_category", "step_reason")),
        ]
    )
)
_ANNOTATOR = "agentrx"


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    runs: dict[str, Trajectory] = {}

    def parse(document: dict[str, Any]) -> Iterator[Incoming]:
        if agentrx.sniff(document):
            run = agentrx.read(document)
            runs[run.task.id] = run
            return
        yield from _comments_of_document(document, runs)

    return read_trajectory_files(stream, parse, _FIELDS)


def _comments_of_document(document: dict[str, Any], runs: dict[str, Trajectory]) -> Iterator[Incoming]:
    name = str(document.get("trajectory_id"))
    if name not in runs:
        raise InvalidRecord(
            f"names the trajectory {name}, which does not come before it; send trajectories first in the same stream.",
            pointer="/trajectory_id",
        )
    run = runs[name]
    common: dict[str, Any] = {"task": run.task, "places": (run,), "annotator": _ANNOTATOR}
    labels: dict[int, str] = {}
    comments = []
    for index, failure in enumerate(require_list(document.get("failures"), pointer="/failures")):
        at = f"/failures/{index}"
        failure = require_object(failure, pointer=at)
        number = failure.get("step_number")
        last = max(_last_message(step) for step in run.steps) + 1
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= last:
            raise InvalidRecord(
                f"step_number must be between 1 and {last}, not {number}.", pointer=f"{at}/step_number"
            )
        step = step_of(run, number - 1)
        if run.steps[step].source == "agent":
            labels[run.agent_steps.index(step)] = "bad"
        text = _joined(failure, at, "failure_category", "step_reason")
        if text:
            comments.append(CommentValue(text=text, sign=-1, anchor=Anchor(steps=(step, step))))
    summary = optional_str(document.get("failure_summary"), pointer="/failure_summary")
    if summary:
        comments.append(CommentValue(text=summary, sign=-1))
    if labels:
        yield Incoming(kind="step", value=StepValue(labels=labels, corrections={}), **common)
    for value in comments:
        yield Incoming(kind="comment", value=value, **common)


def _joined(failure: dict[str, Any], at: str, *keys: str) -> str:
    return ": ".join(part for key in keys if (part := optional_str(failure.get(key), pointer=f"{at}/{key}")))


def _last_message(step: Any) -> int:
    """The last message of the source in a step: its own, or that of its last result."""
    index: int = step.extra["source_index"]
    return index + len(step.observation)
