"""Deletion of many trajectories by a filter: a preview, then a job that deletes them in chunks and can be cancelled."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import transaction
from django.db.models import Count, Min, Q

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.models import Annotation, Item, ItemTrajectory
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Cancelled, JobState, finish, keep_heartbeat
from apps.core.storage.artifacts import delete_file
from apps.datasets.erasure import (
    attachment_digests,
    drop_unnamed_attachments,
    lock_items,
    models_trained_on,
    version_names,
    withdraw,
)
from apps.datasets.export_jobs import remove_exports
from apps.datasets.models import DatasetVersion, TrajectoryDeletion
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterSource, parse_filter
from apps.trajectories.models import Task, Trace, Trajectory
from workers.schema import holds_any_trajectory

ADVANCE_DELETIONS = "apps.datasets.tasks.advance_deletions"
MOST_DELETED = 1_000_000
DELETED_TOGETHER = 200  # trajectories deleted in one transaction
_CAMPAIGNS_SHOWN = 20
_UNFINISHED = Q(state__in=[JobState.QUEUED, JobState.RUNNING])


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """What deleting the trajectories of a filter deletes. campaigns: (name, items) of those that lose items. versions:
    dataset versions that may hold some of them, and then are withdrawn; models: those trained on these."""

    trajectories: int
    items: int
    annotations: int
    campaigns: tuple[tuple[str, int], ...]
    versions: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """What a chunk had. digests: of the attachments that its trajectories named."""

    trajectories: int
    items: int
    annotations: int
    digests: set[str]


def plan_deletion(project: Project, source: FilterSource) -> DeletionPlan:
    rows = filter_trajectories(project, source).order_by()
    facts = rows.aggregate(first=Min("created_at"))
    items = Item.objects.filter(pk__in=ItemTrajectory.objects.filter(trajectory__in=rows).values("item"))
    counted = items.order_by().values_list("campaign__name").annotate(count=Count("pk"))
    counts = sorted(counted, key=lambda pair: (-pair[1], pair[0]))
    versions = list(_frozen_since(project, facts["first"])) if facts["first"] else []
    return DeletionPlan(
        trajectories=rows.count(),
        items=sum(count for _, count in counts),
        annotations=Annotation.objects.filter(assignment__item__in=items).count(),
        campaigns=tuple(counts[:_CAMPAIGNS_SHOWN]),
        versions=version_names(versions),
        models=models_trained_on(versions),
    )


@transaction.atomic
def start_deletion(
    *, project: Project, source: FilterSource, expected: int, by: User | None
) -> TrajectoryDeletion:
    """Queue the deletion of what the filter finds now. expected: how many the person confirmed; raises Conflict where
    there are more by now, and DomainError where there is none."""
    filter = parse_filter(source)
    Project.objects.select_for_update().get(pk=project.pk)
    if TrajectoryDeletion.objects.filter(_UNFINISHED, project=project).exists():
        raise Conflict("Another deletion of trajectories is running. Wait for its end, or cancel it.")
    keys = filter_trajectories(project, filter).order_by().aggregate(keys=ArrayAgg("pk", default=[]))["keys"]
    if not keys:
        raise DomainError("No trajectory matches the filter; nothing is deleted.")
    if len(keys) > MOST_DELETED:
        raise DomainError(
            f"The filter finds {len(keys):,} trajectories; delete at most {MOST_DELETED:,} at a time."
        )
    if len(keys) > expected:
        raise Conflict(
            f"The filter finds {len(keys):,} trajectories by now, and you confirmed {expected:,}. Look at the new "
            "number and confirm it."
        )
    job = TrajectoryDeletion.objects.create(
        project=project, query=filter.query, trajectory_ids=sorted(keys), item_count=len(keys), created_by=by
    )
    record_audit(
        project=project,
        actor=by,
        verb="trajectories.deletion_started",
        target=str(job),
        data={"filter": filter.query, "trajectories": len(keys)},
    )
    job_queue.nudge_on_commit(ADVANCE_DELETIONS)
    return job


def cancel_deletion(*, job: TrajectoryDeletion, by: User) -> None:
    """What is deleted until then stays deleted."""
    if job.is_finished:
        raise Conflict("This deletion has already finished.")
    job_queue.request_cancel(job)
    record_audit(project=job.project, actor=by, verb="trajectories.deletion_cancelled", target=str(job))


def run_deletion(job: TrajectoryDeletion) -> None:
    """A claimed deletion to its end; one that was interrupted goes on with what is left."""
    try:
        with keep_heartbeat(job) as heartbeat:
            _withdraw_versions(job)
            for chunk in _chunks(job):
                heartbeat.check()
                _delete_chunk(job, chunk)
                heartbeat.progress = {"done": job.deleted, "total": job.item_count, "note": "deleting"}
    except Cancelled:
        _end(job, JobState.CANCELLED)
    except DomainError as error:
        _end(job, JobState.FAILED, error=error.message)
    else:
        _end(job, JobState.SUCCEEDED)


def _chunks(job: TrajectoryDeletion) -> Iterator[list[int]]:
    for start in range(0, len(job.trajectory_ids), DELETED_TOGETHER):
        yield job.trajectory_ids[start : start + DELETED_TOGETHER]


def _frozen_since(project: Project, moment: Any) -> Any:
    rows = DatasetVersion.objects.filter(project=project, withdrawn_at=None).select_related("project")
    return rows.filter(Q(state=JobState.SUCCEEDED, created_at__gte=moment) | _UNFINISHED).order_by("pk")


def _withdraw_versions(job: TrajectoryDeletion) -> None:
    """Before anything is deleted: versions that hold some of the trajectories, and those that are being built."""
    rows = Trajectory.objects.filter(pk__in=job.trajectory_ids).order_by()
    first = rows.aggregate(first=Min("created_at"))["first"]
    if first is None:
        return
    hashes = set(rows.values_list("content_hash", flat=True).iterator())
    earlier = rows.values_list("earlier_content_hash", flat=True).iterator()
    hashes |= {content for content in earlier if content}
    held = [
        version
        for version in _frozen_since(job.project, first)
        if not version.is_finished or _holds_any(version, hashes)
    ]
    with transaction.atomic(), job_queue.fenced(job):
        names = withdraw(held, "trajectories in it were deleted", job.created_by)
        job.version_names = [*job.version_names, *names]
        job.model_names = sorted({*job.model_names, *models_trained_on(held)})
        job.save(update_fields=["version_names", "model_names"])


def _holds_any(version: DatasetVersion, hashes: set[str]) -> bool:
    folder = data_folder(version)
    return any(holds_any_trajectory(folder / f"{split}.jsonl.zst", hashes) for split in SPLITS)


def _delete_chunk(job: TrajectoryDeletion, keys: list[int]) -> None:
    """Trajectories with their items."""
    with transaction.atomic(), job_queue.fenced(job):
        deleted = delete_trajectories(job.project, keys)
        job.digests = sorted({*job.digests, *deleted.digests})
        job.annotations += deleted.annotations
        job.deleted += deleted.trajectories
        job.items += deleted.items
        job.save(update_fields=["annotations", "deleted", "items", "digests"])


def delete_trajectories(project: Project, keys: Collection[int]) -> DeletedRows:
    """A chunk of trajectories with their items, in the transaction of the caller, who then deletes the attachments that
    no other trajectory has (`drop_unnamed_attachments`), and exports."""
    rows = Trajectory.objects.filter(project=project, pk__in=keys)
    digests = attachment_digests(rows)
    items = lock_items(Item.objects.filter(places__trajectory__in=rows))
    annotations = Annotation.objects.filter(assignment__item__in=items).count()
    Item.objects.filter(pk__in=items).delete()
    traces = [name for name in rows.values_list("metadata__trace", flat=True) if isinstance(name, str)]
    tasks = list(rows.order_by().values_list("task", flat=True).distinct())
    trajectories = rows.count()
    rows.delete()
    Trace.objects.filter(project=project, name__in=traces).delete()  # or they would be created again
    Task.objects.filter(pk__in=tasks, trajectories=None).delete()
    return DeletedRows(trajectories, len(items), annotations, digests)


def _end(job: TrajectoryDeletion, state: JobState, *, error: str = "") -> None:
    remove_exports(project=job.project)
    with transaction.atomic():
        files = drop_unnamed_attachments(job.project, job.digests)
        data = {
            "filter": job.query,
            "trajectories": job.deleted,
            "items": job.items,
            "judgements": job.annotations,
            "datasets": job.version_names,
            "models": job.model_names,
        }
        record_audit(
            project=job.project, actor=job.created_by, verb="trajectories.deleted", target=str(job), data=data
        )
        finish(job, state, error=error, progress={}, trajectory_ids=[], digests=[])
    for name in files:  # after the commit: a file without a row does no harm
        delete_file(name)
