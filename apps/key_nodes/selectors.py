"""Reads of key nodes, and what trajectories reach of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, QuerySet

from apps.accounts.models import Project
from apps.core.errors import DomainError, NotFound
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import load_trajectories
from workers import schema
from workers.schema.key_nodes import KeyNode, KeyNodes, read_key_nodes


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node and where one trajectory reaches it; step None: nowhere. is_expected: whether the observation there is the
    expected one, None where none is expected."""

    place: int
    node: KeyNode
    step: int | None
    observed: str | None = None
    is_expected: bool | None = None


def list_key_nodes(project: Project, task: str = "") -> QuerySet[TaskKeyNodes]:
    """Newest first. task: the id of a task; all where empty."""
    rows = TaskKeyNodes.objects.filter(project=project).select_related("project", "task", "changed_by")
    return (rows.filter(task__external_id=task) if task else rows).order_by("-pk")


def get_key_nodes(project: Project, pk: int) -> TaskKeyNodes:
    """Raises NotFound."""
    found = list_key_nodes(project).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There are no key nodes {pk} in this project.")
    return found


def named_task(project: Project, external_id: str) -> Task:
    """Raises DomainError, with a pointer into the body that names it."""
    found = project.tasks.filter(external_id=external_id).first()
    if found is None:
        message = f"There is no task {external_id[:100]!r} in this project."
        raise DomainError(message, pointer="/task", status=422)
    return found


def key_nodes_of(task: Task) -> TaskKeyNodes | None:
    return TaskKeyNodes.objects.filter(task=task).select_related("task", "project").first()


def read_nodes(own: TaskKeyNodes) -> KeyNodes:
    """Of the columns, which services have checked."""
    return read_key_nodes(own.document)


def node_rows(own: TaskKeyNodes, trajectory: schema.Trajectory) -> list[NodeRow]:
    """In the order of the nodes."""
    from workers.engine.rules.key_nodes import reached_nodes  # loads the engine

    return [
        NodeRow(place, found.node, found.step, found.observed, found.is_expected)
        for place, found in enumerate(reached_nodes(read_nodes(own), trajectory.steps))
    ]


def rows_of_trajectory(trajectory: Trajectory) -> tuple[TaskKeyNodes | None, list[NodeRow]]:
    """The key nodes of its task, and where it reaches them."""
    own = key_nodes_of(trajectory.task)
    if own is None:
        return None, []
    return own, node_rows(own, load_trajectories([trajectory.pk])[trajectory.pk])


def stored_rows(trajectory: Trajectory) -> tuple[TaskKeyNodes | None, list[NodeRow]]:
    """The same from its completion, without reading its steps: where that is of this revision, and no node expects an
    observation."""
    own = key_nodes_of(trajectory.task)
    if own is None:
        return None, []
    nodes = read_nodes(own).nodes
    stored = list_completions(own).filter(trajectory=trajectory).first()
    if stored is None or any(node.expected is not None for node in nodes):
        return rows_of_trajectory(trajectory)
    pairs = enumerate(zip(nodes, stored.steps, strict=True))
    return own, [NodeRow(place, node, step) for place, (node, step) in pairs]


def stale_trajectories(project: Project | None = None) -> QuerySet[Trajectory]:
    """Of tasks with key nodes: those without a completion of their revision."""
    rows = Trajectory.objects.filter(task__key_node_list__isnull=False)
    rows = rows.exclude(key_node_completion__revision=F("task__key_node_list__revision"))
    return rows if project is None else rows.filter(project=project)


def list_completions(own: TaskKeyNodes) -> QuerySet[KeyNodeCompletion]:
    """Of this revision, the newest trajectories first."""
    rows = KeyNodeCompletion.objects.filter(key_nodes=own, revision=own.revision)
    return rows.select_related("trajectory").order_by("-trajectory_id")


def reached_counts(own: TaskKeyNodes, completions: Sequence[KeyNodeCompletion]) -> list[int]:
    """By node, how many of these completions have it."""
    return [
        sum(place < len(each.steps) and each.steps[place] is not None for each in completions)
        for place in range(len(own.nodes))
    ]
