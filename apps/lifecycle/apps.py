from django.apps import AppConfig

RETENTION_EVERY_SECONDS = 600.0


class LifecycleConfig(AppConfig):
    name = "apps.lifecycle"
    label = "lifecycle"

    def register(self) -> None:
        from apps.core.jobs import job_queue, periodic
        from apps.datasets import export_jobs
        from apps.inbox import job_notices
        from apps.lifecycle.archive_jobs import (
            ADVANCE_EXPORTS,
            project_export_notice,
            remove_old_project_exports,
            remove_project_exports,
        )
        from apps.lifecycle.models import ProjectDeletion, ProjectExport, RetentionRun
        from apps.lifecycle.retention import ADVANCE_RETENTION, start_due_retention
        from apps.lifecycle.services import ADVANCE_DELETIONS, retry_left_files

        job_queue.register(RetentionRun, ADVANCE_RETENTION)
        job_queue.register(ProjectDeletion, ADVANCE_DELETIONS)
        job_queue.register(ProjectExport, ADVANCE_EXPORTS)
        export_jobs.ARCHIVE_REMOVERS.add(remove_project_exports)
        job_notices.register(ProjectExport, project_export_notice)
        periodic.register(
            "remove old archives of projects", RETENTION_EVERY_SECONDS, remove_old_project_exports
        )
        periodic.register("delete left files of deleted projects", RETENTION_EVERY_SECONDS, retry_left_files)
        periodic.register("start retention", RETENTION_EVERY_SECONDS, start_due_retention)
