"""Reads of subgoals."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.subgoals.models import TaskSubgoals
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import load_trajectories
from workers.schema import Trajectory as TrajectoryContent
from workers.subgoals.subgoal_lists import Subgoal

MOST_LOOKED_AT = 20  # stored trajectories of a task, the newest


def list_subgoals(project: Project, state: str = "") -> QuerySet[TaskSubgoals]:
    """Newest first. state: one of TaskSubgoals.State; all where empty."""
    rows = TaskSubgoals.objects.filter(project=project).select_related("project", "task", "decided_by")
    return (rows.filter(state=state) if state else rows).order_by("-pk")


def get_subgoals(project: Project, pk: int) -> TaskSubgoals:
    """Raises NotFound."""
    found = list_subgoals(project).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no list of subgoals {pk} in this project.")
    return found


def tasks_without_list(project: Project, trajectories: QuerySet[Trajectory], most: int) -> list[int]:
    """Keys of tasks of these trajectories whose list is neither typed nor accepted, nor waits for a person."""
    rows = Task.objects.filter(project=project, pk__in=trajectories.order_by().values("task"))
    rows = rows.exclude(metadata__has_key="subgoals")
    rows = rows.exclude(subgoal_list__state__in=[TaskSubgoals.State.PROPOSED, TaskSubgoals.State.ACCEPTED])
    return list(rows.exclude(instruction="").order_by("pk").values_list("pk", flat=True)[:most])


def newest_successes(tasks: Sequence[int], most: int) -> dict[int, list[int]]:
    """By task, keys of the newest trajectories that succeeded."""
    found: dict[int, list[int]] = {}
    rows = Trajectory.objects.filter(task__in=tasks, success=True).order_by("-pk")
    for task, key in rows.values_list("task", "pk").iterator():
        own = found.setdefault(task, [])
        if len(own) < most:
            own.append(key)
    return found


def newest_of_task(task: Task) -> list[TrajectoryContent]:
    keys = Trajectory.objects.filter(task=task).order_by("-pk").values_list("pk", flat=True)
    return list(load_trajectories(keys[:MOST_LOOKED_AT]).values())


def read_subgoals(rows: Sequence[Any]) -> list[Subgoal]:
    """Of the column, which services have checked."""
    return [msgspec.convert(row, Subgoal) for row in rows]
