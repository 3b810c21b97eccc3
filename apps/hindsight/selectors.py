"""Reads of hindsight tasks."""

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.hindsight.models import HindsightTask
from apps.trajectories.models import Trajectory


def list_hindsight_tasks(project: Project, state: str = "") -> QuerySet[HindsightTask]:
    """Newest first. state: one of HindsightTask.State; all where empty."""
    rows = HindsightTask.objects.filter(project=project)
    rows = rows.select_related("project", "trajectory__task", "decided_by")
    return (rows.filter(state=state) if state else rows).order_by("-pk")


def get_hindsight_task(project: Project, pk: int) -> HindsightTask:
    """Raises NotFound."""
    found = list_hindsight_tasks(project).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no hindsight task {pk} in this project.")
    return found


def trajectories_without_task(rows: QuerySet[Trajectory], most: int) -> list[int]:
    """Keys of the newest of these trajectories without a hindsight task that is accepted or waits for a person."""
    decided = [HindsightTask.State.PROPOSED, HindsightTask.State.ACCEPTED]
    rows = rows.exclude(hindsight_task__state__in=decided)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:most])
