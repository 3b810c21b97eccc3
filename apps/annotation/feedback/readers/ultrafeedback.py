"""`ultrafeedback`: of each completion the overall score (1 to 10), a score from 1 to 5 by each aspect with its
rationale, and the critique as a comment. Aspects rated N/A have no score."""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, label_number
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.rating import RatingValue
from apps.annotation.feedback_types.rubric import ScoreValue
from apps.trajectories.formats.data_rows import ultrafeedback as rows
from workers.errors import InvalidRecord
from workers.schema.decode import optional_str, require_object

_ANNOTATOR = "ultrafeedback"
_OVERALL, _ASPECT = (1.0, 10.0), (1.0, 5.0)
_UNRATED = ("", "N/A", None)


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    for index, (completion, trajectory) in enumerate(zip(row["completions"], places, strict=True)):
        at = f"/completions/{index}"
        common: dict[str, Any] = {"task": trajectory.task, "places": (trajectory,), "annotator": _ANNOTATOR}
        if completion.get("overall_score") not in _UNRATED:
            score = _within(
                label_number(completion, "overall_score", pointer=at), _OVERALL, f"{at}/overall_score"
            )
            yield Incoming(kind="rating", value=RatingValue(rating=score, scale=_OVERALL), **common)
        for value in _scores(completion.get("annotations"), f"{at}/annotations"):
            yield Incoming(kind="rubric", value=value, **common)
        critique = optional_str(completion.get("critique"), pointer=f"{at}/critique")
        if critique and critique.strip():
            yield Incoming(kind="comment", value=CommentValue(text=critique.strip()), **common)


def _scores(annotations: Any, at: str) -> Iterator[ScoreValue]:
    """annotations: by aspect, in one release an object, in another a list of one."""
    for aspect, given in require_object(annotations or {}, pointer=at).items():
        where = f"{at}/{aspect}"
        given = require_object(given[0] if isinstance(given, list) and given else given, pointer=where)
        if given.get("Rating") in _UNRATED:
            continue
        score = _within(label_number(given, "Rating", pointer=where), _ASPECT, f"{where}/Rating")
        note = optional_str(given.get("Rationale"), pointer=f"{where}/Rationale")
        yield ScoreValue(criterion=aspect, value=score, scale=_ASPECT, note=note or None)


def _within(score: float, scale: tuple[float, float], pointer: str) -> float:
    if not scale[0] <= score <= scale[1]:
        raise InvalidRecord(f"the score is {scale[0]:g} to {scale[1]:g}, not {score:g}.", pointer=pointer)
    return score


read = answer_reader(
    rows,
    _labels,
    [
        *(f"/completions/*/{name}" for name in ("overall_score", "critique", "response", "model")),
        *(
            f"/completions/*/annotations/*{index}/{name}"
            for index in ("", "/0")
            for name in ("Rating", "Rationale")
        ),
    ],
)
