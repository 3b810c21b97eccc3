"""Items by `trajectory_id`: the only form that reads the database. For a separate thread."""

from collections.abc import Sequence

from django.db import connection

from apps.accounts.models import Project
from apps.core.number_parsing import whole_number
from apps.trajectories.attachments import restore_pictures
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from workers import schema
from workers.errors import InvalidRecord


def load_stored_trajectories(
    keys: Sequence[str], project: str, *, pointer: str = "", with_pictures: bool = False
) -> list[schema.Trajectory]:
    """The same of several, in three queries. Raises InvalidRecord at `pointer/<index>`."""
    try:
        numbers = [whole_number(key) for key in keys]
        known = [number for number in numbers if number is not None]
        own = Trajectory.objects.filter(pk__in=known, project__slug=project).values_list("pk", flat=True)
        found = load_trajectories(own)
        for index, number in enumerate(numbers):
            if number not in found:
                message = f"there is no trajectory {keys[index]!r} in the project {project}."
                raise InvalidRecord(message, pointer=f"{pointer}/{index}")
        stored = [found[number] for number in numbers if number is not None]
        return [_with_pictures(each, project) for each in stored] if with_pictures else stored
    finally:
        connection.close()


def load_stored_trajectory(
    key: str, project: str, *, pointer: str, with_pictures: bool = False
) -> schema.Trajectory:
    """The stored trajectory with this id, if it is of the project. Raises InvalidRecord at `pointer`.

    with_pictures: as data URLs, for a model that sees.
    """
    try:
        number = whole_number(key)
        if number is None or not Trajectory.objects.filter(pk=number, project__slug=project).exists():
            raise InvalidRecord(f"there is no trajectory {key!r} in the project {project}.", pointer=pointer)
        stored = load_trajectories([number])[number]
        return _with_pictures(stored, project) if with_pictures else stored
    finally:
        connection.close()


def _with_pictures(stored: schema.Trajectory, project: str) -> schema.Trajectory:
    return restore_pictures(Project.objects.get(slug=project), stored)
