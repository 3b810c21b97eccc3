"""Archiving a project, opening it again, and deleting it with everything that it has."""

import shutil
import time
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from apps.accounts.actors import Actor, person_of
from apps.accounts.keys import revoke_api_key
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.annotation.models import Campaign
from apps.annotation.services import pause_campaign
from apps.bulk.models import BulkJob
from apps.bulk.services import cancel_bulk_job
from apps.connectors.models import Connector
from apps.connectors.services import pause_connector
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JOB_TYPES, Cancelled, Job, JobState
from apps.core.storage.artifacts import delete_tree
from apps.core.storage.storage_names import home_path, storage_name
from apps.lifecycle.models import ProjectDeletion
from apps.lifecycle.project_rows import OUTSIDE, project_paths, project_rows
from apps.retraining.cycle import stop_cycle
from apps.retraining.models import RetrainingCycle
from apps.rewards.models import Release
from apps.rewards.services import roll_back_release, switch_off
from apps.training.launching.run_files import run_files_name
from apps.training.models import TrainingRun

ADVANCE_DELETIONS = "apps.lifecycle.tasks.advance_project_deletions"
ARCHIVED = "The project is archived."
# Folders of the store that are named by the project.
_FOLDERS = ("uploads", "attachments", "exports", "model-exports", "project-exports")
_SECONDS_FOR_JOBS = 120.0  # that other jobs of the project have to end


@transaction.atomic
def archive_project(*, project: Project, by: Actor) -> Project:
    """Make the project read only: endpoints answer 503, retraining cycles and releases end, campaigns and connectors
    are paused, jobs are cancelled."""
    project = Project.objects.select_for_update().get(pk=project.pk)
    if project.archived_at is not None:
        return project
    for cycle in RetrainingCycle.objects.filter(endpoint__project=project, ended_at=None):
        stop_cycle(cycle=cycle, by=by, reason=ARCHIVED)
    for release in Release.objects.filter(endpoint__project=project, ended_at=None):
        roll_back_release(release=release, by=by, reason=ARCHIVED)
    for endpoint in project.endpoints.filter(switched_off=False):
        switch_off(endpoint=endpoint, reason=ARCHIVED, by=by)
    for campaign in project.campaigns.filter(state=Campaign.State.OPEN):
        pause_campaign(campaign=campaign)
    for connector in Connector.objects.filter(project=project, state=Connector.State.ACTIVE):
        pause_connector(connector=connector, paused=True, by=by)
    for job in project.bulk_jobs.filter(state__in=[BulkJob.State.RUNNING, BulkJob.State.PAUSED]):
        cancel_bulk_job(job=job, by=by)
    _cancel_jobs(project.pk)
    project.archived_at = timezone.now()
    project.save(update_fields=["archived_at"])
    record_audit(project=project, actor=by, verb="project.archived", target=project.slug)
    return project


@transaction.atomic
def restore_project(*, project: Project, by: Actor) -> Project:
    """Open an archived project again. What archiving paused or switched off stays so until a person starts it, and keys
    that a deletion revoked stay revoked."""
    project = Project.objects.select_for_update().get(pk=project.pk)
    deletion = ProjectDeletion.objects.select_for_update().filter(project_key=project.pk).first()
    if deletion is not None:
        if not deletion.has_stopped:
            raise Conflict("The project is being deleted and cannot be opened again.")
        deletion.delete()  # it deleted nothing: the rows go in one transaction
    if project.archived_at is not None:
        project.archived_at = None
        project.save(update_fields=["archived_at"])
        record_audit(project=project, actor=by, verb="project.restored", target=project.slug)
    return project


@transaction.atomic
def request_deletion(*, project: Project, typed_name: str, by: Actor) -> ProjectDeletion:
    """Archive the project, revoke its keys, and have a worker delete everything that it has."""
    if typed_name.strip() != project.slug:
        raise DomainError(f"Type the name of the project, {project.slug}, to delete it.", pointer="/name")
    existing = ProjectDeletion.objects.filter(project_key=project.pk).first()
    if existing is not None:
        if existing.has_stopped:
            _try_again(existing)
            record_audit(project=project, actor=by, verb="project.deletion-requested", target=project.slug)
        return existing
    archive_project(project=project, by=by)
    for key in project.api_keys.filter(revoked_at=None).select_related("project"):
        revoke_api_key(key=key, by=by, reason="the project is deleted")
    deletion = ProjectDeletion.objects.create(
        project_key=project.pk, slug=project.slug, requested_by=person_of(by)
    )
    record_audit(project=project, actor=by, verb="project.deletion-requested", target=project.slug)
    job_queue.nudge_on_commit(ADVANCE_DELETIONS)
    return deletion


def delete_project(deletion: ProjectDeletion) -> None:
    """A claimed deletion to its end: rows in one transaction, then files. It may be interrupted and begun again."""
    try:
        with job_queue.keep_heartbeat(deletion) as heartbeat:
            heartbeat.progress = {"done": 0, "total": None, "note": "Waiting for other jobs of the project"}
            _wait_for_jobs(deletion.project_key, heartbeat)
            heartbeat.progress = {"done": 0, "total": None, "note": "Deleting rows"}
            with job_queue.fenced(deletion):
                if Project.objects.filter(pk=deletion.project_key).exists():
                    _delete_project_rows(deletion)
            for key in deletion.run_keys:
                shutil.rmtree(home_path("runs", key), ignore_errors=True)  # of this host
            for number, name in enumerate(deletion.files):
                heartbeat.check()
                heartbeat.progress = {"done": number, "total": len(deletion.files), "note": "Deleting files"}
                delete_tree(name)
    except Cancelled:
        job_queue.finish(deletion, JobState.CANCELLED, progress={})
        return
    data = {"rows": deletion.rows, "files": len(deletion.files)}
    with transaction.atomic():
        record_audit(project=None, actor=None, verb="project.deleted", target=deletion.slug, data=data)
        job_queue.finish(deletion, JobState.SUCCEEDED, progress={}, files=[], run_keys=[])


def retry_left_files() -> int:
    """For beat: go on with deletions that stopped after the rows were deleted, for example while the store was away."""
    stopped = ProjectDeletion.objects.filter(state__in=ProjectDeletion.STOPPED).exclude(files=[])
    left = [row for row in stopped if not Project.objects.filter(pk=row.project_key).exists()]
    for deletion in left:
        _try_again(deletion)
    return len(left)


def _try_again(deletion: ProjectDeletion) -> None:
    job_queue.requeue(deletion)
    job_queue.nudge_on_commit(ADVANCE_DELETIONS)


def _delete_project_rows(deletion: ProjectDeletion) -> None:
    """And keep in the deletion which files they had."""
    runs = TrainingRun.objects.filter(project=deletion.project_key)
    deletion.run_keys = list(runs.values_list("pk", flat=True))
    deletion.files = _file_names(deletion.project_key)
    deletion.rows = _delete_rows(deletion.project_key)
    deletion.save(update_fields=["run_keys", "files", "rows"])


def _delete_rows(project_key: int) -> int:
    """Farther tables first: rows are found by way of nearer ones. Constraints are checked at the commit."""
    deleted = 0
    for model in reversed(project_paths()):
        rows = project_rows(model, project_key)
        _clear_outside_references(rows, project_key)
        deleted += rows._raw_delete(rows.db)
    return deleted


def _clear_outside_references(rows: models.QuerySet[Any], project_key: int) -> None:
    """Nullable relations to the rows from rows that stay. Those of the project are deleted as they are: a row may not
    be allowed to be without what it names."""
    inside = rows.order_by().values("pk")
    for relation in rows.model._meta.related_objects:
        field = relation.field
        if not (field.null and field.concrete) or field.model._meta.label in OUTSIDE:
            continue
        referring = field.model._base_manager.filter(**{f"{field.name}__in": inside})
        if field.model in project_paths():
            referring = referring.exclude(pk__in=project_rows(field.model, project_key).values("pk"))
        referring.update(**{field.name: None})


def _file_names(project_key: int) -> list[str]:
    """Names of the store: folders of the project, and what its rows name."""
    names = {storage_name(folder, project_key) for folder in _FOLDERS}
    for model in project_paths():
        if any(field.name == "artifact" for field in model._meta.concrete_fields):
            rows = project_rows(model, project_key).exclude(artifact="")
            names |= set(rows.values_list("artifact", flat=True))
    names |= {run_files_name(run) for run in TrainingRun.objects.filter(project=project_key).iterator()}
    return sorted(names)


def _cancel_jobs(project_key: int) -> None:
    for model in _job_models():
        unfinished = project_rows(model, project_key).filter(state__in=[JobState.QUEUED, JobState.RUNNING])
        unfinished.update(cancel_requested=True)


def _wait_for_jobs(project_key: int, heartbeat: job_queue.JobHeartbeat) -> None:
    """Running ones write into folders that are about to be deleted. Who does not end in time loses its claim."""
    until = time.monotonic() + _SECONDS_FOR_JOBS
    while time.monotonic() < until:
        running = (
            project_rows(model, project_key).filter(state=JobState.RUNNING).exists()
            for model in _job_models()
        )
        if not any(running):
            return
        heartbeat.check()
        time.sleep(1)


def _job_models() -> list[type[Job]]:
    models_of_jobs = {job_type.model for job_type in JOB_TYPES}
    return [model for model in project_paths() if model in models_of_jobs]
