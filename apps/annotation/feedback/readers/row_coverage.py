"""What became of each field of a row of feedback, by the mechanism of trajectory imports (`field_coverage`)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from apps.annotation.feedback.incoming import Incoming, StoredTrajectory, UnreadField
from apps.trajectories.field_coverage import PathPatterns, field_uses
from apps.trajectories.trajectory_values import TrajectoryValues
from workers.schema import Trajectory, TrajectoryId


@dataclass(frozen=True, slots=True)
class RowFields:
    """The fields that a format reads. patterns: of those read into another form, and those left out on purpose.

    texts: columns that are read whole where they are text, as it may be cut into a prompt and an answer.
    """

    patterns: PathPatterns = field(default_factory=PathPatterns)
    texts: tuple[str, ...] = ()


def unread_fields(
    row: dict[str, Any], incomings: Iterable[Incoming], fields: RowFields
) -> Iterator[UnreadField]:
    """The fields of a row that are in none of the records made of it."""
    found = TrajectoryValues()
    for incoming in incomings:
        for place in incoming.places:
            trajectory = place.sent if isinstance(place, StoredTrajectory) else place
            if isinstance(trajectory, Trajectory):
                found.add_trajectory(trajectory)
            elif isinstance(trajectory, TrajectoryId):
                found.add_read(trajectory.id)
        about = [incoming.annotator, incoming.item, incoming.campaign, incoming.origin, incoming.task]
        found.add_read(msgspec.to_builtins([incoming.value, *about], str_keys=True))
    rest = {
        name: value for name, value in row.items() if not (name in fields.texts and isinstance(value, str))
    }
    for use in field_uses(rest, found, fields.patterns):
        if use.use != "read":
            yield UnreadField(use.path, use.use, use.kept_reason)
