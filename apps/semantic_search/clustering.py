"""Trajectories are put into clusters: the job, and what is stored of it."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection, transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.semantic_search.models import ClusterMember, TrajectoryClustering, TrajectoryPassage
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterSource, parse_filter
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import stream_trajectories
from workers.schema.passages import step_text

ADVANCE = "apps.semantic_search.tasks.advance_clusterings"
CHILD = "workers.clusters"
MAX_CLUSTERED = 20_000  # trajectories
MIN_CLUSTERS, MAX_CLUSTERS = 2, 50
_NAMED_BY = 1000  # trajectories whose text is read to name the clusters
_TEXT = 2000  # characters of each
_MEANS = """
    SELECT passage.trajectory_id, avg(passage.embedding::vector)::real[]
    FROM semantic_search_trajectorypassage AS passage
    WHERE passage.trajectory_id IN (
        SELECT DISTINCT trajectory_id FROM semantic_search_trajectorypassage
        WHERE project_id = %s AND trajectory_id IN ({rows})
    )
    GROUP BY passage.trajectory_id
    ORDER BY md5(%s || '-' || passage.trajectory_id::text)
    LIMIT {most}
"""


@transaction.atomic
def start_clustering(
    *, project: Project, source: FilterSource = None, cluster_count: int | None = None, by: Actor = None
) -> TrajectoryClustering:
    """Queue clusters of the indexed trajectories that pass the filter now. cluster_count: None to choose it.

    Raises DomainError.
    """
    if cluster_count is not None and not MIN_CLUSTERS <= cluster_count <= MAX_CLUSTERS:
        raise DomainError(
            f"{cluster_count} clusters; choose {MIN_CLUSTERS} to {MAX_CLUSTERS}, or none to have it chosen.",
            pointer="/cluster_count",
        )
    filter = parse_filter(source)
    rows = filter_trajectories(project, filter)
    indexed = TrajectoryPassage.objects.filter(project=project, trajectory__in=rows)
    if not indexed.exists():
        raise DomainError(
            "No trajectory that passes the filter is in the index for semantic search. Index them first.",
            pointer="/filter",
        )
    clustering = TrajectoryClustering.objects.create(
        project=project,
        query=filter.query,
        cluster_count=cluster_count,
        matching=rows.count(),
        created_by=person_of(by),
    )
    record_audit(
        project=project,
        actor=by,
        verb="clustering.started",
        target=str(clustering),
        data={"query": filter.query, "clusters": cluster_count},
    )
    job_queue.nudge_on_commit(ADVANCE)
    return clustering


@transaction.atomic
def delete_clustering(*, clustering: TrajectoryClustering, by: Actor) -> None:
    """Raises Conflict while it is computed."""
    locked = TrajectoryClustering.objects.select_for_update().get(pk=clustering.pk)
    if not locked.is_finished:
        raise Conflict("The clusters are still being computed. Cancel that first.")
    record_audit(project=locked.project, actor=by, verb="clustering.deleted", target=str(locked), data={})
    locked.delete()


def execute(clustering: TrajectoryClustering) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(clustering) as heartbeat:
        heartbeat.progress = {"done": 0, "total": None, "note": "Reading embeddings"}
        try:
            result = _compute(clustering, heartbeat)
            finish(clustering, JobState.SUCCEEDED, progress={}, result=result)
        except DomainError as error:
            finish(clustering, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(clustering, JobState.CANCELLED)


def _compute(clustering: TrajectoryClustering, heartbeat: JobHeartbeat) -> dict[str, Any]:
    keys, vectors = _mean_vectors(clustering)
    with tempfile.TemporaryDirectory(prefix="clusters-") as scratch:
        folder = Path(scratch)
        config = {"cluster_count": clustering.cluster_count, "seed": clustering.pk}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        np.save(folder / "vectors.npy", vectors, allow_pickle=False)
        texts = dict(enumerate(_texts(keys[:_NAMED_BY], heartbeat)))
        (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        heartbeat.progress = {"done": 0, "total": None, "note": "Computing clusters"}
        core_subprocess.run_to_end(
            CHILD, [str(folder)], folder=folder, what="The clustering", check=heartbeat.check, given={}
        )
        rows = np.load(folder / "clusters.npy", allow_pickle=False)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    _store_members(clustering, keys, rows)
    return _with_shares(result, len(keys))


def _mean_vectors(clustering: TrajectoryClustering) -> tuple[list[int], Any]:
    """Keys and [trajectories, hidden], in a random order that is the same each time."""
    rows = filter_trajectories(clustering.project, clustering.query).order_by().values("pk")
    wanted, parameters = rows.query.sql_with_params()
    statement = _MEANS.format(rows=wanted, most=MAX_CLUSTERED)
    with connection.cursor() as cursor:
        cursor.execute(statement, [clustering.project_id, *parameters, str(clustering.pk)])
        found = cursor.fetchall()
    if not found:
        raise DomainError("The trajectories, or their passages, were deleted meanwhile.")
    return [key for key, _ in found], np.asarray([vector for _, vector in found], dtype=np.float32)


def _texts(keys: list[int], heartbeat: JobHeartbeat) -> Iterator[str]:
    """The beginning of each trajectory, in the order of the keys."""
    found = {}
    for trajectory in stream_trajectories(keys, check=heartbeat.check):
        texts = [trajectory.task.instruction, *map(step_text, trajectory.steps[:20])]
        found[int(trajectory.id or 0)] = "\n".join(texts)[:_TEXT]
    for key in keys:
        yield found.get(key, "")


def _store_members(clustering: TrajectoryClustering, keys: list[int], rows: Any) -> None:
    """Of trajectories that are still there. Raises ClaimLost."""
    with job_queue.fenced(clustering):
        clustering.members.all().delete()
        there = set(Trajectory.objects.select_for_update().filter(pk__in=keys).values_list("pk", flat=True))
        ClusterMember.objects.bulk_create(
            (
                ClusterMember(
                    clustering=clustering,
                    trajectory_id=key,
                    cluster=int(cluster),
                    x=float(x),
                    y=float(y),
                    distance=float(distance),
                )
                for key, (cluster, x, y, distance) in zip(keys, rows, strict=True)
                if key in there
            ),
            batch_size=2000,
        )


def _with_shares(result: Mapping[str, Any], drawn: int) -> dict[str, Any]:
    clusters = [found | {"share": found["count"] / drawn} for found in result["clusters"]]
    return dict(result) | {"clusters": clusters, "drawn": drawn}
