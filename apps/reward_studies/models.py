"""Studies of a composed reward: weights fitted to feedback, and analyses of what it rewards."""

from django.db import models

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.rewards.models import Endpoint


class RewardStudy(Job):
    """A spec, some stored trajectories or feedback, and what was found. Numbers and keys only: no text of trajectories.

    spec: as it was written, with the full names of its models. endpoint: whose spec it is, if any; None once that was
    deleted. source: {"filter": query} | {"dataset": name} | {"campaign": name}. options: of services.StudyOptions.
    result: of `weight_report` or `analysis_report`, with {"left_out": [{"reason", "count"}]}.
    """

    class Kind(models.TextChoices):
        WEIGHTS = "weights", "Weights"
        ANALYSIS = "analysis", "Analysis"

    project = models.ForeignKey(Project, models.CASCADE, related_name="reward_studies")
    number = ProjectNumberField()
    kind = models.CharField(max_length=8, choices=Kind)
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True, related_name="reward_studies")
    spec = models.JSONField()
    source = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="reward_study_number")]

    def __str__(self) -> str:
        return f"reward study {self.pk}"

    @property
    def title(self) -> str:
        """For people, within the project."""
        kind = "Weight fit" if self.kind == self.Kind.WEIGHTS else "Reward analysis"
        return f"{kind} {self.number}"

    @property
    def about(self) -> str:
        """What it is of, for people."""
        if "dataset" in self.source:
            return f"dataset {self.source['dataset']}"
        if "campaign" in self.source:
            return f"campaign {self.source['campaign']}"
        return (
            f"trajectories with {self.source['filter']}" if self.source.get("filter") else "all trajectories"
        )
