"""Shared queries of trajectories."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from django.db import connection
from django.db.models import Avg, F, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.trajectories.filter_queries import trajectory_facts
from apps.trajectories.models import Step, Trace, Trajectory, TrajectoryFact
from apps.trajectories.serialization import steps_of, to_schema, with_steps
from workers import schema

__all__ = [
    "best_of_tasks",
    "fact_names",
    "iterate_trajectory_keys",
    "keys_by_external_id",
    "list_agents",
    "load_trajectories",
    "narrowed",
    "newest_traces",
    "require_trajectory",
    "to_schema",
]
_AGENTS = """
    WITH RECURSIVE agents AS (
        (
            SELECT agent_name, agent_version FROM trajectories_trajectory
            WHERE project_id = %(project)s ORDER BY agent_name, agent_version LIMIT 1
        )
        UNION ALL
        SELECT next.* FROM agents, LATERAL (
            SELECT agent_name, agent_version FROM trajectories_trajectory
            WHERE project_id = %(project)s
                AND (agent_name, agent_version) > (agents.agent_name, agents.agent_version)
            ORDER BY agent_name, agent_version LIMIT 1
        ) AS next
    )
    SELECT agent_name, agent_version FROM agents LIMIT %(most)s
"""


def load_trajectories(ids: Iterable[int]) -> dict[int, schema.Trajectory]:
    """Trajectories by key, in two queries; its `id` is the key as text. Unknown keys are left out."""
    keys = list(dict.fromkeys(ids))
    steps: dict[int, list[schema.Step]] = {key: [] for key in keys}
    for key, step in steps_of(Step.objects.filter(trajectory__in=keys).order_by("trajectory_id", "index")):
        steps[key].append(step)
    found = Trajectory.objects.filter(pk__in=keys).select_related("task").in_bulk()
    return {key: with_steps(found[key], tuple(steps[key])) for key in keys if key in found}


def stream_trajectories(
    ids: Iterable[int], *, at_once: int = 100, check: Callable[[], None] = lambda: None
) -> Iterator[schema.Trajectory]:
    """The same one by one, few in memory. check: called now and then."""
    waiting = iter(ids)
    while chunk := list(islice(waiting, at_once)):
        check()
        yield from load_trajectories(chunk).values()


def load_without_steps(ids: Iterable[int]) -> dict[int, schema.Trajectory]:
    """The same without steps, in one query: their content is not theirs, and their content hash says nothing."""
    found = Trajectory.objects.filter(pk__in=list(ids)).select_related("task")
    return {row.pk: to_schema(row, []) for row in found}


def iterate_trajectory_keys(rows: QuerySet[Trajectory], *, chunk: int = 100) -> Iterator[list[int]]:
    """Keys of all rows in the order they came, in chunks, with constant memory."""
    last = 0
    while keys := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:chunk]):
        yield keys
        last = keys[-1]


def keys_by_external_id(project: Project, ids: Iterable[str]) -> dict[str, int]:
    """Keys by the source's own id; of several trajectories with one id, the newest."""
    found = Trajectory.objects.filter(project=project, external_id__in=set(ids))
    return dict(found.order_by("pk").values_list("external_id", "pk"))


def keys_by_content_hash(project: Project, hashes: Iterable[str]) -> dict[str, int]:
    """content hash -> key, of those the project has (still)."""
    return {content: keys[0] for content, keys in _keys_of_contents(project, set(hashes)).items()}


def stored_keys(
    project: Project, wanted: Iterable[tuple[str, int | None]]
) -> dict[tuple[str, int | None], int]:
    """Keys by content hash and the key that an export named: that one if it has the content, else the newest that has;
    without what the project does not have."""
    wanted = set(wanted)
    keys = _keys_of_contents(project, {content for content, _ in wanted})
    return {
        (content, number): number if number is not None and number in keys[content] else keys[content][-1]
        for content, number in wanted
        if content in keys
    }


def _keys_of_contents(project: Project, hashes: set[str]) -> dict[str, list[int]]:
    """Keys by content hash, the oldest first; by the earlier hash those that have one."""
    keys: dict[str, list[int]] = {}
    for name in ("content_hash", "earlier_content_hash"):
        rows = Trajectory.objects.filter(**{"project": project, f"{name}__in": hashes - keys.keys()})
        for content, pk in list(rows.order_by("pk").values_list(name, "pk")):
            keys.setdefault(content, []).append(pk)
    return keys


def require_trajectory(project: Project, pk: int) -> Trajectory:
    """The trajectory with its task, if it is the project's. Raises NotFound."""
    row = Trajectory.objects.select_related("task").filter(project=project, pk=pk).first()
    if row is None:
        raise NotFound(f"There is no trajectory {pk} in this project.")
    return row


def sibling_trajectories(trajectory: Trajectory, most: int = 50) -> list[Trajectory]:
    """Other runs of its task, newest first."""
    rows = Trajectory.objects.filter(task=trajectory.task_id).exclude(pk=trajectory.pk)
    return list(rows.order_by("-created_at", "-pk")[:most])


def parent_trajectory(trajectory: Trajectory) -> Trajectory | None:
    """The trajectory whose agent started this one's: importers keep its own id as metadata `parent`."""
    parent = trajectory.metadata.get("parent")
    if not isinstance(parent, str) or not parent:
        return None
    rows = Trajectory.objects.filter(project=trajectory.project_id, external_id=parent)
    return rows.exclude(pk=trajectory.pk).order_by("-pk").first()


def sub_agent_trajectories(trajectory: Trajectory, most: int = 50) -> list[Trajectory]:
    """Those whose agents this one's started, in the order of the import."""
    if not trajectory.external_id:
        return []
    rows = Trajectory.objects.filter(
        project=trajectory.project_id, metadata__contains={"parent": trajectory.external_id}
    )
    return list(rows.exclude(pk=trajectory.pk).order_by("pk")[:most])


def fact_names(project: Project) -> list[str]:
    """Of what is known about the project's trajectories."""
    rows = TrajectoryFact.objects.filter(project=project).order_by("name")
    return list(rows.values_list("name", flat=True).distinct())


def best_of_tasks(rows: QuerySet[Trajectory], fact: str = "") -> QuerySet[Trajectory]:
    """Of each task the run whose facts have the highest mean, the newest of equals; none of a task without facts.

    fact: only by that of this name; without, by all but judges'.
    """
    facts = trajectory_facts(fact).order_by()
    mean = facts.values("trajectory").annotate(mean=Avg("value")).values("mean")
    ranked = rows.annotate(worth=Subquery(mean)).filter(worth__isnull=False)
    place = Window(RowNumber(), partition_by=F("task"), order_by=[F("worth").desc(), F("pk").desc()])
    best = ranked.annotate(place=place).filter(place=1).values_list("pk", flat=True)
    return Trajectory.objects.filter(pk__in=list(best))


def newest_traces(project: Project) -> QuerySet[Trace]:
    """A few of those that came lately."""
    return Trace.objects.filter(project=project).order_by("-last_at")[:5]


def unindexed_trajectories(project: Project) -> QuerySet[Trajectory]:
    """Imported before words, patterns and names of tools were looked for: they are written together."""
    return Trajectory.objects.filter(project=project, tools__isnull=True)


def narrowed(rows: QuerySet[Trajectory], most: int) -> tuple[QuerySet[Trajectory], int]:
    """The same rows, quick to be ordered, and how many they are: `most` + 1 where there are more, at that cost.

    Few of many are found by what they are filtered by, and then put in order; the database, asked for the newest of
    them, would look through all that are newer than any.
    """
    keys = list(rows.order_by().values_list("pk", flat=True)[: most + 1])
    return (Trajectory.objects.filter(pk__in=keys) if len(keys) <= most else rows), len(keys)


def list_agents(project: Project, most: int = 1000) -> list[tuple[str, str]]:
    """(name, version) of every agent, each found by one look into the index, however many trajectories it has."""
    with connection.cursor() as cursor:
        cursor.execute(_AGENTS, {"project": project.pk, "most": most})
        return [(name, version) for name, version in cursor.fetchall()]
