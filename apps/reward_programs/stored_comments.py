"""Comments that people left on trajectories, for a language model that revises a reward program."""

from dataclasses import dataclass
from itertools import islice

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.metrics.selectors import list_comments
from apps.trajectories.masking import mask_text
from apps.trajectories.models import Trajectory, TrajectoryComment

MOST_COMMENTS = 40
LONGEST_COMMENT = 500
_SIGNS = {1: "good", -1: "bad", None: ""}


@dataclass(frozen=True, slots=True)
class StoredComment:
    """trajectory: its key. line: what the model is told, masked."""

    trajectory: int
    line: str


def stored_comments(
    project: Project, trajectories: QuerySet[Trajectory], detectors: tuple[str, ...]
) -> list[StoredComment]:
    """On these trajectories, of current annotations and of the trajectories' pages: half of each where there are many,
    the newest first."""
    keys = trajectories.order_by().values("pk")
    annotated = list_comments(project, None).filter(trajectory__in=keys).order_by("-pk")
    on_pages = TrajectoryComment.objects.filter(project=project, trajectory__in=keys).order_by("-pk")
    found = [
        [
            _stored(row.trajectory_id, row.first_step, row.sign, row.text, detectors)
            for row in annotated[:MOST_COMMENTS]
        ],
        [
            _stored(row.trajectory_id, row.step, row.sign, row.text, detectors)
            for row in on_pages[:MOST_COMMENTS]
        ],
    ]
    first, second = sorted(found, key=len)
    first = first[: MOST_COMMENTS // 2]
    return [*first, *islice(second, MOST_COMMENTS - len(first))]


def _stored(
    trajectory: int, step: int | None, sign: int | None, text: str, detectors: tuple[str, ...]
) -> StoredComment:
    about = ", ".join(filter(None, ["" if step is None else f"step {step}", _SIGNS[sign]]))
    said = " ".join(mask_text(text, detectors).split())[:LONGEST_COMMENT]
    return StoredComment(trajectory, f"{about}: {said}" if about else said)
