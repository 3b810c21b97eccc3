"""`autolibra`: comments on trajectories, with the trajectories: an archive of AutoLibra's folder, or its documents.

An annotation is {"annotator_id", "content": {name: words}, "span"?: {"point_indices"?}}: a comment of each text in
`content`, on the steps of its span.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trajectory_files import read_trajectory_files, step_of
from apps.annotation.feedback_types.comment import CommentValue
from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.formats.benchmarks import autolibra
from workers.errors import InvalidRecord
from workers.schema import Anchor, Trajectory
from workers.schema.decode import optional_str, require_list, require_object

_FIELDS = RowFields(
    PathPatterns([*autolibra.READ, "/annotations/*/content", "/annotations/*/span/point_indices"])
)
_ANNOTATOR = "autolibra"


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_trajectory_files(stream, parse, _FIELDS)


def parse(document: dict[str, Any]) -> Iterator[Incoming]:
    run = autolibra.read(document)
    for index, annotation in enumerate(
        require_list(document.get("annotations") or [], pointer="/annotations")
    ):
        at = f"/annotations/{index}"
        annotation = require_object(annotation, pointer=at)
        annotator = optional_str(annotation.get("annotator_id"), pointer=f"{at}/annotator_id") or _ANNOTATOR
        anchor = _anchor(run, annotation.get("span"), f"{at}/span")
        for name, text in require_object(annotation.get("content") or {}, pointer=f"{at}/content").items():
            if isinstance(text, str) and text.strip():
                value = CommentValue(text=text if name == "feedback" else f"{name}: {text}", anchor=anchor)
                yield Incoming(kind="comment", value=value, task=run.task, places=(run,), annotator=annotator)


def _anchor(run: Trajectory, span: Any, at: str) -> Anchor | None:
    if span is None:
        return None
    indices = require_object(span, pointer=at).get("point_indices") or []
    for place in require_list(indices, pointer=f"{at}/point_indices"):
        if isinstance(place, bool) or not isinstance(place, int) or place < 0:
            raise InvalidRecord("must be the number of a point, from 0.", pointer=f"{at}/point_indices")
    return Anchor(steps=(step_of(run, min(indices)), step_of(run, max(indices)))) if indices else None
