"""Reward programs: versions of code that computes a reward, and the jobs that try and draft them."""

from datetime import datetime

from django.db import models

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection


class RewardProgramVersion(models.Model):
    """Code that does not change any more. A new text is a new version.

    origin: who wrote it. accepted_at: when a person accepted a draft of a language model; what a person wrote is
    accepted from the start. dry_run_passed_at: when every trajectory of a dry run had a value. deleted_at: its code is
    gone, and the row keeps the number from being given again.
    """

    class Origin(models.TextChoices):
        PERSON = "person", "Written by a person"
        DRAFT = "draft", "Drafted by a language model"

    project = models.ForeignKey(Project, models.CASCADE, related_name="reward_programs")
    name = models.CharField(max_length=60)
    version = models.PositiveIntegerField()
    code = models.TextField()
    code_hash = models.CharField(max_length=64)
    note = models.TextField(blank=True)
    origin = models.CharField(max_length=6, choices=Origin, default=Origin.PERSON)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    dry_run_passed_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="reward_program_version")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug}/{self.short_name}"

    @property
    def short_name(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def status(self) -> str:
        """For people."""
        if self.accepted_at is None:
            return "Draft, not accepted"
        return "May be deployed" if self.dry_run_passed_at else "No dry run has passed"

    @property
    def deployable_since(self) -> datetime | None:
        """None where it may not be deployed."""
        if self.accepted_at is None or self.dry_run_passed_at is None:
            return None
        return max(self.accepted_at, self.dry_run_passed_at)


class RewardProgramJob(Job):
    """A dry run of a version on stored trajectories, or a language model's draft of a new version.

    No text of trajectories is kept. program: None of a draft until its version is there. options: of
    services.DryRunOptions or services.DraftOptions. result of a dry run: {"passed", "trajectories", "failed", "values",
    "failures", "milliseconds"}; of a draft: {"attempts": [{"found_by", "problem"}], "stored_comments", "usage",
    "prompts"}.
    """

    class Kind(models.TextChoices):
        DRY_RUN = "dry_run", "Dry run"
        DRAFT = "draft", "Draft"

    project = models.ForeignKey(Project, models.CASCADE, related_name="reward_program_jobs")
    number = ProjectNumberField()
    kind = models.CharField(max_length=7, choices=Kind)
    name = models.CharField(max_length=60)
    program = models.ForeignKey(RewardProgramVersion, models.CASCADE, null=True, related_name="jobs")
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="+")
    options = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="reward_program_job_number")
        ]

    def __str__(self) -> str:
        return f"job {self.pk} of a reward program"

    @property
    def title(self) -> str:
        """For people, within the project."""
        of = self.program.short_name if self.program else self.name
        return f"{self.get_kind_display()} {self.number} of {of}"
