"""Hindsight tasks, which a person accepts, and the jobs in which a language model proposes them."""

from django.db import models

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.trajectories.models import Trajectory


class HindsightProposal(Job):
    """A language model's proposal of what the trajectories of a filter did. options: of services.HindsightOptions.
    trajectories: keys of those that have no text yet. result: {"usage", "prompts", "problems": {trajectory: sentence}}.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="hindsight_proposals")
    number = ProjectNumberField()
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="+")
    options = models.JSONField(default=dict)
    trajectories = models.JSONField(default=list)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="hindsight_proposal_number")
        ]

    def __str__(self) -> str:
        return f"hindsight proposal {self.pk}"

    @property
    def title(self) -> str:
        """For people, within the project."""
        return f"Proposal of hindsight tasks {self.number}"


class HindsightTask(models.Model):
    """What a trajectory did, as a task. evidence: `step` indices that the language model names for it. accepted_text:
    what a person accepted last, a goal that the metadata of the trajectory has as reached; an edit is proposed again,
    and this stays until it is decided."""

    class State(models.TextChoices):
        PROPOSED = "proposed", "Proposed"
        ACCEPTED = "accepted", "Accepted"
        REJECTED = "rejected", "Rejected"

    project = models.ForeignKey(Project, models.CASCADE, related_name="hindsight_tasks")
    trajectory = models.OneToOneField(Trajectory, models.CASCADE, related_name="hindsight_task")
    proposal = models.ForeignKey(
        HindsightProposal, models.SET_NULL, null=True, related_name="hindsight_tasks"
    )
    text = models.TextField()
    evidence = models.JSONField(default=list)
    accepted_text = models.TextField(blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"hindsight task of {self.trajectory}"
