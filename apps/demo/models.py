"""The sample project of a user, loaded by a job."""

from django.db import models

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job


class SampleLoad(Job):
    project = models.OneToOneField(Project, models.CASCADE, related_name="sample_load")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)

    def __str__(self) -> str:
        return f"sample of {self.project}"
