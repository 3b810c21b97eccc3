"""What workers do for the rules of retention, and to delete projects."""

from apps.core.jobs.celery_app import shared_task
from apps.core.jobs.job_queue import claim_next, work
from apps.lifecycle.archive_jobs import build_project_export
from apps.lifecycle.models import ProjectDeletion, ProjectExport, RetentionRun
from apps.lifecycle.retention import apply_retention
from apps.lifecycle.services import delete_project


@shared_task
def advance_retention_runs() -> None:
    """Apply the rules of the project that waits longest."""
    if (run := claim_next(RetentionRun)) is not None:
        work(run, apply_retention)


@shared_task
def advance_project_deletions() -> None:
    """Delete the project that waits longest."""
    if (deletion := claim_next(ProjectDeletion)) is not None:
        work(deletion, delete_project)


@shared_task
def advance_project_exports() -> None:
    """Write the archive that waits longest."""
    if (export := claim_next(ProjectExport)) is not None:
        work(export, build_project_export)
