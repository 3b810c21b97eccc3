"""Hindsight tasks, which a person accepts, and the jobs in which a language model proposes them."""

from django.db import models

from apps.accounts.models import Project
from apps.proposals.models import ProposalJob, Proposed
from apps.trajectories.models import Trajectory


class HindsightProposal(ProposalJob):
    """A language model's proposal of what the trajectories of a filter did. options: of kind.HindsightOptions.
    trajectories: keys of those that have no text yet."""

    what = "hindsight tasks"
    keys_field = "trajectories"
    project = models.ForeignKey(Project, models.CASCADE, related_name="hindsight_proposals")
    trajectories = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="hindsight_proposal_number")
        ]


class HindsightTask(Proposed):
    """What a trajectory did, as a task. evidence: `step` indices that the language model names for it. accepted_text:
    what a person accepted last, a goal that the metadata of the trajectory has as reached; an edit is proposed again,
    and this stays until it is decided."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="hindsight_tasks")
    trajectory = models.OneToOneField(Trajectory, models.CASCADE, related_name="hindsight_task")
    proposal = models.ForeignKey(
        HindsightProposal, models.SET_NULL, null=True, related_name="hindsight_tasks"
    )
    text = models.TextField()
    evidence = models.JSONField(default=list)
    accepted_text = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"hindsight task of {self.trajectory}"
