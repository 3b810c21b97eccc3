"""Key nodes are set, added, edited and deleted; completions follow."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.services import record_audit
from apps.core.errors import DomainError, NotFound
from apps.core.jobs import job_queue
from apps.key_nodes import selectors
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes
from apps.key_nodes.nudges import COMPLETE
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import iterate_trajectory_keys, load_trajectories
from workers.errors import RewardError
from workers.schema.key_nodes import KeyNodes, node_values, read_key_nodes

AT_ONCE = 20  # trajectories of a task whose completion is known when a change returns; the others follow
_MOST = 20_000  # trajectories of one refresh


@transaction.atomic
def set_key_nodes(
    *, task: Task, nodes: Sequence[Any], in_order: bool | None = None, by: Actor
) -> TaskKeyNodes:
    """Replace all key nodes of a task. nodes: as decoded JSON, at least one. in_order: as it is where None. Raises
    DomainError at the bad field."""
    locked = Task.objects.select_for_update().select_related("project").get(pk=task.pk)
    own = TaskKeyNodes.objects.filter(task=locked).first() or TaskKeyNodes(
        task=locked, project=locked.project, revision=0
    )
    own.in_order = own.in_order if in_order is None else in_order
    checked = checked_key_nodes(nodes, in_order=own.in_order)
    own.nodes = [node_values(node) for node in checked.nodes]
    own.revision += 1
    own.changed_by = person_of(by)
    own.save()
    _write_metadata(locked, own.document)
    record_audit(
        project=locked.project,
        actor=by,
        verb="key_nodes.changed",
        target=locked.external_id[:200],
        data={"nodes": len(own.nodes), "in_order": own.in_order},
    )
    newest = Trajectory.objects.filter(task=locked).order_by("-pk").values_list("pk", flat=True)
    _complete(list(newest[:AT_ONCE]))
    job_queue.nudge_on_commit(COMPLETE)
    return own


@transaction.atomic
def add_key_node(*, task: Task, node: Any, by: Actor) -> TaskKeyNodes:
    """Behind the others. Raises DomainError at the bad field, without `/nodes/…` before it."""
    Task.objects.select_for_update().get(pk=task.pk)  # two that are added together are both kept
    own = selectors.key_nodes_of(task)
    nodes = list(own.nodes) if own is not None else []
    return _set_node(task, [*nodes, node], len(nodes), by)


@transaction.atomic
def edit_key_node(*, own: TaskKeyNodes, place: int, node: Any, by: Actor) -> TaskKeyNodes:
    """Raises NotFound, DomainError."""
    nodes = _locked_nodes(own, place)
    nodes[place] = node
    return _set_node(own.task, nodes, place, by)


@transaction.atomic
def move_key_node(*, own: TaskKeyNodes, place: int, to: int, by: Actor) -> TaskKeyNodes:
    """To another place among the others. Raises NotFound."""
    nodes = _locked_nodes(own, place)
    nodes.insert(min(max(to, 0), len(nodes) - 1), nodes.pop(place))
    return set_key_nodes(task=own.task, nodes=nodes, by=by)


@transaction.atomic
def delete_key_node(*, own: TaskKeyNodes, place: int, by: Actor) -> TaskKeyNodes | None:
    """None where it was the last one. Raises NotFound."""
    nodes = _locked_nodes(own, place)
    del nodes[place]
    if not nodes:
        delete_key_nodes(own=own, by=by)
        return None
    return set_key_nodes(task=own.task, nodes=nodes, by=by)


@transaction.atomic
def delete_key_nodes(*, own: TaskKeyNodes, by: Actor) -> None:
    """All of a task, with what trajectories reached of them."""
    task = Task.objects.select_for_update().select_related("project").get(pk=own.task_id)
    record_audit(
        project=task.project,
        actor=by,
        verb="key_nodes.deleted",
        target=task.external_id[:200],
        data={"nodes": len(own.nodes)},
    )
    own.delete()
    _write_metadata(task, None)


def refresh_completions(rows: Any = None) -> int:
    """Of trajectories that came after the last change, or whose task's key nodes changed. rows: of those; all where
    None. How many."""
    done = 0
    stale = selectors.stale_trajectories() if rows is None else rows
    for keys in iterate_trajectory_keys(stale):
        with transaction.atomic():
            done += _complete(keys)
        if done >= _MOST:
            break
    return done


def checked_key_nodes(nodes: Sequence[Any], *, in_order: bool) -> KeyNodes:
    """Raises DomainError for what is no list of key nodes."""
    try:
        return read_key_nodes({"nodes": list(nodes), "in_order": in_order})
    except RewardError as error:
        message = error.message[0].upper() + error.message[1:]
        raise DomainError(message, pointer=error.pointer or "/nodes", status=422) from None


def _set_node(task: Task, nodes: list[Any], place: int, by: Actor) -> TaskKeyNodes:
    """`set_key_nodes`, whose errors name the fields of the node at `place`."""
    try:
        return set_key_nodes(task=task, nodes=nodes, by=by)
    except DomainError as error:
        start = f"/nodes/{place}"
        pointer = error.pointer or ""
        pointer = pointer.removeprefix(start) if pointer.startswith(start) else pointer
        raise DomainError(error.message, pointer=pointer, status=422) from None


def _locked_nodes(own: TaskKeyNodes, place: int) -> list[Any]:
    Task.objects.select_for_update().get(pk=own.task_id)
    own.refresh_from_db(fields=["nodes", "in_order", "revision"])
    if not 0 <= place < len(own.nodes):
        raise NotFound(f"The task has {len(own.nodes)} key nodes; there is none at {place}, counted from 0.")
    return list(own.nodes)


def _write_metadata(task: Task, document: dict[str, Any] | None) -> None:
    """Where the component `key_nodes` reads them."""
    task.metadata = {key: value for key, value in task.metadata.items() if key != "key_nodes"}
    if document is not None:
        task.metadata["key_nodes"] = document
    task.save(update_fields=["metadata"])


def _complete(keys: Sequence[int]) -> int:
    """Compute and store the completions of these trajectories, whose tasks have key nodes."""
    rows = Trajectory.objects.filter(pk__in=keys, task__key_node_list__isnull=False)
    lists = {row.pk: row.task.key_node_list for row in rows.select_related("task__key_node_list")}
    completions = []
    for key, trajectory in load_trajectories(sorted(lists)).items():
        found = selectors.node_rows(lists[key], trajectory)
        completions.append(
            KeyNodeCompletion(
                trajectory_id=key,
                key_nodes=lists[key],
                revision=lists[key].revision,
                steps=[row.step for row in found],
                share=sum(row.step is not None for row in found) / len(found),
                unexpected=[row.place for row in found if row.is_expected is False],
            )
        )
    KeyNodeCompletion.objects.bulk_create(
        completions,
        update_conflicts=True,
        unique_fields=["trajectory"],
        update_fields=["key_nodes", "revision", "steps", "share", "unexpected"],
    )
    return len(completions)
