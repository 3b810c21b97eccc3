"""How long a project keeps what, and the jobs that delete by these rules or delete a project."""

from django.db import models

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job, JobState


class RetentionRule(models.Model):
    """After how many days trajectories, sampled requests and export files are deleted; empty: never."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="retention_rule")
    trajectory_days = models.PositiveIntegerField(null=True, blank=True)
    sample_days = models.PositiveIntegerField(null=True, blank=True)
    export_days = models.PositiveIntegerField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"retention of {self.project_id}"


class RetentionRun(Job):
    """One application of the rules. result: {"trajectories", "samples", "guard_decisions", "exports"} that were deleted
    until now.
    digests: of attachments of deleted trajectories, which are deleted at the end where no other trajectory has them."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="retention_runs")
    result = models.JSONField(default=dict)
    digests = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"retention run {self.pk}"


class ProjectExport(Job):
    """One archive of the project's data. artifact: its name in the store, removed after a time."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="archives")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    artifact = models.CharField(max_length=255, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    contents = models.JSONField(default=dict)  # {what: number}
    removed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"archive {self.pk}"

    @property
    def is_there(self) -> bool:
        return self.state == JobState.SUCCEEDED and bool(self.artifact) and self.removed_at is None


class ProjectDeletion(Job):
    """The deletion of a project, which it outlives. files: of the store, to be deleted after the rows. run_keys: of the
    training runs, whose folders are deleted with them."""

    STOPPED = (JobState.FAILED, JobState.CANCELLED)

    project_key = models.BigIntegerField()
    slug = models.CharField(max_length=60)
    requested_by = models.ForeignKey(User, models.SET_NULL, null=True)
    files = models.JSONField(default=list)
    run_keys = models.JSONField(default=list)
    rows = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project_key"], name="project_deletion_once")]

    def __str__(self) -> str:
        return f"deletion of {self.slug}"

    @property
    def has_stopped(self) -> bool:
        """Before its end: it can be tried again, and the project, if it is still there, be opened again."""
        return self.state in self.STOPPED
