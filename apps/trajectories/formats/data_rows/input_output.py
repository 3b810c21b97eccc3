"""Samples that OpenRLHF's `batch_inference` writes: {"input", "output", "reward"?}, rendered prompt and answer."""

from typing import Any

from apps.trajectories.formats.data_rows.rendered import RenderedSample, read_rendered
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    agent_text,
    required_text,
    row_trajectory,
    user_text,
)
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `input` and `output`, both text"
READ = (*OUTCOME_READ, "/input", "/output")
KNOWN = ("input", "output")


_OF_TRACES = {  # records of stores of traces have these columns too
    *("traceId", "trace_id", "startTime", "start_time", "projectId", "project_id"),
    *("sessionId", "session_id", "htmlPath", "bookmarked"),
}


def sniff(document: Any) -> bool:
    return has_columns(document) and not is_dump(document)


def has_columns(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("input"), str)
        and isinstance(document.get("output"), str)
        and not {"instruction", "messages", "conversations"} & document.keys()
        and not _OF_TRACES & document.keys()
    )


def is_dump(document: dict[str, Any]) -> bool:
    """Whether a row with these columns is one of verl."""
    return "score" in document and "step" in document


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    return read_row(row)


def read_row(row: dict[str, Any], *, known: tuple[str, ...] = KNOWN, **fields: Any) -> Trajectory:
    text, output = required_text(row, "input"), required_text(row, "output")
    rendered = read_rendered(text, output) or RenderedSample(user_text(text), agent_text(output), {})
    fields |= {"known": known, "metadata": rendered.about}
    return row_trajectory(rendered.prompt, rendered.answer, row, pointer="/output", **fields)
