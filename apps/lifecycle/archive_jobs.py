"""Archives of projects as jobs: written, downloaded, and removed after a time."""

import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import delete_tree, store_file
from apps.core.storage.storage_names import storage_name
from apps.inbox.job_notices import JobNotice
from apps.lifecycle.models import ProjectExport
from apps.lifecycle.project_archive import write_project

ADVANCE_EXPORTS = "apps.lifecycle.tasks.advance_project_exports"


@transaction.atomic
def start_project_export(*, project: Project, by: Actor) -> ProjectExport:
    """The one that is not finished yet, or a new one."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    unfinished = ProjectExport.objects.filter(project=project, state__in=[JobState.QUEUED, JobState.RUNNING])
    if (found := unfinished.first()) is not None:
        return found
    export = ProjectExport.objects.create(project=project, created_by=person_of(by))
    record_audit(project=project, actor=by, verb="project.exported", target=project.slug)
    job_queue.nudge_on_commit(ADVANCE_EXPORTS)
    return export


def build_project_export(export: ProjectExport) -> None:
    """Write a claimed export. Errors are stored in its row."""
    name = storage_name("project-exports", export.project_id, f"{export.pk}-{export.attempt}.zip")
    try:
        with (
            job_queue.keep_heartbeat(export) as heartbeat,
            tempfile.TemporaryDirectory(prefix="project-export-") as scratch,
        ):
            heartbeat.progress = {"done": 0, "total": None, "note": "Writing the archive"}
            path = Path(scratch, "project.zip")
            with path.open("wb") as file:
                contents = write_project(export.project, file, heartbeat.check)
            size = path.stat().st_size
            store_file(path, name)
    except job_queue.Cancelled:
        job_queue.finish(export, JobState.CANCELLED)
    except DomainError as error:
        job_queue.finish(export, JobState.FAILED, error=error.message)
    else:
        changes: dict[str, Any] = {"artifact": name, "size": size, "contents": contents, "progress": {}}
        job_queue.finish(export, JobState.SUCCEEDED, **changes)
        if export.removed_at is not None:  # data was deleted while it was written
            delete_tree(name)


@transaction.atomic
def remove_project_exports(project: Project) -> None:
    """After a deletion of data: archives hold it still. Running ones are cancelled."""
    for export in ProjectExport.objects.select_for_update().filter(project=project, removed_at=None):
        if not export.is_finished:
            job_queue.request_cancel(export)
        remove_project_export(export)


def remove_project_export(export: ProjectExport) -> None:
    ProjectExport.objects.filter(pk=export.pk).update(removed_at=timezone.now())
    if export.artifact:
        transaction.on_commit(partial(delete_tree, export.artifact), robust=True)


def remove_old_project_exports() -> int:
    """For beat: remove files after the days of exports; how many."""
    before = timezone.now() - timedelta(days=settings.EXPORT_DAYS)
    old = ProjectExport.objects.filter(removed_at=None, finished_at__lt=before).exclude(artifact="")[:20]
    for export in old:
        remove_project_export(export)
    return len(old)


def project_export_notice(export: ProjectExport) -> JobNotice:
    path = reverse("lifecycle:project-data", args=[export.project.slug])
    return JobNotice(export.project, export.created_by, f"The archive of {export.project.name}", path)
