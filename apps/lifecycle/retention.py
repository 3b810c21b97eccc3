"""Deleting by age: what would go is shown before, what went is in the audit trail.

Kept, whatever their age: trajectories in a frozen dataset version that was not withdrawn, and those in an item of a
campaign, with the work of people on them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts.actors import Actor
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.annotation.models import ItemTrajectory
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Cancelled, JobState
from apps.core.storage.artifacts import delete_file
from apps.datasets.erasure import drop_unnamed_attachments
from apps.datasets.export_jobs import remove_export, remove_exports
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from apps.datasets.trajectory_deletion import DELETED_TOGETHER, delete_trajectories
from apps.lifecycle.archive_jobs import remove_project_export
from apps.lifecycle.models import ProjectExport, RetentionRule, RetentionRun
from apps.lineage.record_summary import trajectory_hashes
from apps.rewards.models import GuardDecision, ScoreSample
from apps.trajectories.models import Trajectory
from workers.schema.storage import read_raw_records

ADVANCE_RETENTION = "apps.lifecycle.tasks.advance_retention_runs"
EVERY = timedelta(days=1)
MOST_DAYS = 36_500
DAYS = ("trajectory_days", "sample_days", "export_days")
_BATCH = 1000
_MOST_READ = 5000  # feedback records, while a page waits
_COUNTED = ("trajectories", "samples", "guard_decisions", "exports")


@dataclass(frozen=True, slots=True)
class RetentionPreview:
    """What would be deleted now. in_datasets, in_campaigns: old trajectories that are kept, and why. in_datasets None:
    not counted, the dataset versions are too large; then at most so many trajectories would be deleted."""

    trajectories: int = 0
    in_datasets: int | None = 0
    in_campaigns: int = 0
    samples: int = 0
    guard_decisions: int = 0
    exports: int = 0


@transaction.atomic
def set_retention(
    *,
    project: Project,
    trajectory_days: int | None,
    sample_days: int | None,
    export_days: int | None,
    by: Actor,
) -> RetentionRule:
    """Delete by these rules from now on, once a day. None: never."""
    days = {"trajectory_days": trajectory_days, "sample_days": sample_days, "export_days": export_days}
    for name, value in days.items():
        if value is not None and not 1 <= value <= MOST_DAYS:
            raise DomainError(f"A number of days must be from 1 to {MOST_DAYS:,}.", pointer=f"/{name}")
    rule, _ = RetentionRule.objects.update_or_create(project=project, defaults=days)
    record_audit(project=project, actor=by, verb="retention.changed", data=days)
    return rule


def preview_retention(rule: RetentionRule) -> RetentionPreview:
    """How much would be deleted if the rules were applied now."""
    now = timezone.now()
    old = _old_trajectories(rule, now)
    placed = old.filter(_is_placed()).count() if old is not None else 0
    free = old.exclude(_is_placed()) if old is not None else None
    frozen = _count_frozen(rule.project, free) if free is not None else 0
    samples, decisions = _old_samples(rule, now), _old_decisions(rule, now)
    exports, archives = _old_exports(rule, now), _old_archives(rule, now)
    return RetentionPreview(
        trajectories=0 if free is None else free.count() - (frozen or 0),
        in_datasets=frozen,
        in_campaigns=placed,
        samples=0 if samples is None else samples.count(),
        guard_decisions=0 if decisions is None else decisions.count(),
        exports=sum(0 if rows is None else rows.count() for rows in (exports, archives)),
    )


def start_due_retention() -> int:
    """For beat: queue a run for every project whose rules were not applied for a day; how many."""
    due = RetentionRule.objects.filter(project__archived_at=None)
    due = due.exclude(trajectory_days=None, sample_days=None, export_days=None)
    due = due.filter(Q(applied_at=None) | Q(applied_at__lt=timezone.now() - EVERY))
    return sum(start_retention(rule.project) is not None for rule in due.select_related("project"))


@transaction.atomic
def start_retention(project: Project) -> RetentionRun | None:
    """Queue a run, unless one is not finished yet or the project is archived: nothing in it changes."""
    if Project.objects.select_for_update(no_key=True).get(pk=project.pk).archived_at is not None:
        return None
    unfinished = RetentionRun.objects.filter(project=project, state__in=[JobState.QUEUED, JobState.RUNNING])
    if unfinished.exists():
        return None
    run = RetentionRun.objects.create(project=project)
    job_queue.nudge_on_commit(ADVANCE_RETENTION)
    return run


def apply_retention(run: RetentionRun) -> None:
    """A claimed run to its end. It may be interrupted and begun again."""
    rule = RetentionRule.objects.select_related("project").get(project=run.project_id)
    run.result = dict.fromkeys(_COUNTED, 0) | run.result
    now, state = timezone.now(), JobState.SUCCEEDED
    try:
        with job_queue.keep_heartbeat(run) as heartbeat:
            _check_open(rule.project)
            _delete_trajectories(run, rule, now, heartbeat)
            _delete_samples(run, rule, now, heartbeat)
            _remove_exports(run, rule, now, heartbeat)
    except Cancelled:
        state = JobState.CANCELLED
    if run.result["trajectories"]:
        remove_exports(project=rule.project, trajectories_only=True)
    with job_queue.fenced(run):
        files = drop_unnamed_attachments(rule.project, run.digests)
        if state == JobState.SUCCEEDED:
            RetentionRule.objects.filter(pk=rule.pk).update(applied_at=now)
        if any(run.result.values()):
            record_audit(project=rule.project, actor=None, verb="retention.applied", data=run.result)
        job_queue.finish(run, state, result=run.result, digests=[], progress={})
    for name in files:  # after the commit: a file without a row does no harm
        delete_file(name)


def _check_open(project: Project) -> None:
    if project.archived_at is not None:
        raise Cancelled


def _delete_trajectories(
    run: RetentionRun, rule: RetentionRule, now: datetime, heartbeat: job_queue.JobHeartbeat
) -> None:
    """In chunks. Nothing is withdrawn: what a dataset version holds is kept."""
    if (old := _old_trajectories(rule, now)) is None:
        return
    frozen = frozen_contents(rule.project, heartbeat.check)
    keys = list(old.exclude(_is_placed()).order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), DELETED_TOGETHER):
        heartbeat.check()
        with job_queue.fenced(run):
            locked = old.select_for_update().filter(pk__in=keys[start : start + DELETED_TOGETHER])
            chunk = list(locked.order_by("pk").values_list("pk", flat=True))
            # After the lock: no item can be created with them from here on.
            free = old.filter(pk__in=chunk).exclude(_is_placed())
            hashes = free.values_list("pk", "content_hash", "earlier_content_hash")
            unused = [pk for pk, *contents in hashes if frozen.isdisjoint(contents)]
            deleted = delete_trajectories(rule.project, unused)
            run.result["trajectories"] += deleted.trajectories
            run.digests = sorted({*run.digests, *deleted.digests})
            run.save(update_fields=["result", "digests"])
        heartbeat.progress = {
            "done": min(start + DELETED_TOGETHER, len(keys)),
            "total": len(keys),
            "note": "Deleting trajectories",
        }


def _delete_samples(
    run: RetentionRun, rule: RetentionRule, now: datetime, heartbeat: job_queue.JobHeartbeat
) -> None:
    """And the decisions of guards, whose excerpts are of the same requests."""
    for name, rows in (("samples", _old_samples(rule, now)), ("guard_decisions", _old_decisions(rule, now))):
        while rows is not None and (keys := list(rows.values_list("pk", flat=True)[:_BATCH])):
            heartbeat.check()
            with job_queue.fenced(run):
                _, counts = rows.model.objects.filter(pk__in=keys).delete()
                run.result[name] += counts.get(rows.model._meta.label, 0)
                run.save(update_fields=["result"])


def _remove_exports(
    run: RetentionRun, rule: RetentionRule, now: datetime, heartbeat: job_queue.JobHeartbeat
) -> None:
    for export in _old_exports(rule, now) or ():
        heartbeat.check()
        remove_export(export)
        run.result["exports"] += 1
    for archive in _old_archives(rule, now) or ():
        heartbeat.check()
        remove_project_export(archive)
        run.result["exports"] += 1


def frozen_contents(project: Project, check: Callable[[], object] = lambda: None) -> set[str]:
    """Content hashes of all trajectories in dataset versions of the project that can still be used. Reads them all."""
    found: set[str] = set()
    for version in _usable_versions(project):
        for split in SPLITS:
            check()
            for _, record in read_raw_records(data_folder(version) / f"{split}.jsonl.zst"):
                found.update(trajectory_hashes(record))
    return found


def _usable_versions(project: Project) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(
        project=project, state=JobState.SUCCEEDED, withdrawn_at=None, removed_at=None
    )


def _count_frozen(project: Project, rows: QuerySet[Trajectory]) -> int | None:
    """None where the dataset versions are too large to read while a page waits."""
    splits = _usable_versions(project).values_list("splits", flat=True)
    if sum(sum(counts.values()) for counts in splits) > _MOST_READ:
        return None
    frozen = list(frozen_contents(project))
    return rows.filter(Q(content_hash__in=frozen) | Q(earlier_content_hash__in=frozen)).count()


def _is_placed() -> Exists:
    return Exists(ItemTrajectory.objects.filter(trajectory=OuterRef("pk")))


def _old_trajectories(rule: RetentionRule, now: datetime) -> QuerySet[Trajectory] | None:
    if rule.trajectory_days is None:
        return None
    before = now - timedelta(days=rule.trajectory_days)
    return Trajectory.objects.filter(project=rule.project_id, created_at__lt=before)


def _old_samples(rule: RetentionRule, now: datetime) -> QuerySet[ScoreSample] | None:
    if rule.sample_days is None:
        return None
    before = now - timedelta(days=rule.sample_days)
    return ScoreSample.objects.filter(endpoint__project=rule.project_id, at__lt=before)


def _old_decisions(rule: RetentionRule, now: datetime) -> QuerySet[GuardDecision] | None:
    if rule.sample_days is None:
        return None
    before = now - timedelta(days=rule.sample_days)
    return GuardDecision.objects.filter(endpoint__project=rule.project_id, at__lt=before)


def _old_exports(rule: RetentionRule, now: datetime) -> QuerySet[Export] | None:
    if rule.export_days is None:
        return None
    before = now - timedelta(days=rule.export_days)
    rows = Export.objects.filter(project=rule.project_id, removed_at=None, finished_at__lt=before)
    return rows.exclude(artifact="")


def _old_archives(rule: RetentionRule, now: datetime) -> QuerySet[ProjectExport] | None:
    if rule.export_days is None:
        return None
    before = now - timedelta(days=rule.export_days)
    rows = ProjectExport.objects.filter(project=rule.project_id, removed_at=None, finished_at__lt=before)
    return rows.exclude(artifact="")
