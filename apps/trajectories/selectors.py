"""Reads that several callers share."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.trajectories.cards import StepCard, card_of
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.rows import to_schema, to_step
from workers import schema

__all__ = [
    "by_external_ids",
    "filter_trajectories",
    "iterate_trajectories",
    "load_trajectories",
    "step_cards",
    "to_schema",
    "trajectory_in",
]
PAGE = 20  # steps brought at a time


def load_trajectories(ids: Iterable[int]) -> dict[int, schema.Trajectory]:
    """Trajectories by key, in two queries; its `id` is the key as text. Unknown keys are left out."""
    keys = list(dict.fromkeys(ids))
    steps: dict[int, list[Step]] = {key: [] for key in keys}
    for step in Step.objects.filter(trajectory__in=keys).order_by("trajectory_id", "index"):
        steps[step.trajectory_id].append(step)
    found = Trajectory.objects.filter(pk__in=keys).select_related("task").in_bulk()
    return {key: to_schema(found[key], steps[key]) for key in keys if key in found}


def load_bare(ids: Iterable[int]) -> dict[int, schema.Trajectory]:
    """The same without steps, in one query: their content is not theirs, and their content hash says nothing."""
    found = Trajectory.objects.filter(pk__in=list(ids)).select_related("task")
    return {row.pk: to_schema(row, []) for row in found}


def iterate_trajectories(rows: QuerySet[Trajectory], *, chunk: int = 100) -> Iterator[list[int]]:
    """Keys of all rows in the order they came, in chunks, with constant memory."""
    last = 0
    while keys := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:chunk]):
        yield keys
        last = keys[-1]


def by_external_ids(project: Project, ids: Iterable[str]) -> dict[str, int]:
    """Keys by the source's own id; of several trajectories with one id, the newest."""
    found = Trajectory.objects.filter(project=project, external_id__in=set(ids))
    return dict(found.order_by("pk").values_list("external_id", "pk"))


def by_content(project: Project, hashes: Iterable[str]) -> dict[str, int]:
    """content hash -> key, of those the project has (still)."""
    rows = Trajectory.objects.filter(project=project, content_hash__in=set(hashes))
    return dict(rows.values_list("content_hash", "pk"))


def trajectory_in(project: Project, pk: int) -> Trajectory:
    """The trajectory with its task, if it is the project's. Raises NotFound."""
    row = Trajectory.objects.select_related("task").filter(project=project, pk=pk).first()
    if row is None:
        raise NotFound(f"There is no trajectory {pk} in this project.")
    return row


def filter_trajectories(
    project: Project,
    *,
    task: str = "",
    agent: str = "",
    success: bool | None = None,
    since: datetime | None = None,
) -> QuerySet[Trajectory]:
    """task: a task's id. agent: a name. success: the outcome. since: when it was imported."""
    rows = Trajectory.objects.filter(project=project)
    if task:
        rows = rows.filter(task__external_id=task)
    if agent:
        rows = rows.filter(agent_name=agent)
    if success is not None:
        rows = rows.filter(success=success)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    return rows


def step_cards(
    trajectory_id: int, start: int = 0, stop: int | None = None, *, full: bool = False
) -> list[StepCard]:
    """Cards of the steps from `start` up to `stop`, for trajectories/_steps.html. full: nothing is cut."""
    rows = Step.objects.filter(trajectory=trajectory_id, index__gte=start).order_by("index")
    if stop is not None:
        rows = rows.filter(index__lt=stop)
    return [card_of(to_step(row), row.index, row.agent_step, full=full) for row in rows]
