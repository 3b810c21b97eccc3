"""Requested computations of the influence of feedback records on a served reward."""

from django.db import models

from apps.core.jobs.job_queue import Job
from apps.rewards.models import ScoreSample
from apps.training.models import RewardModel


class Tracing(Job):
    """result: of `workers.influence`: feedback records by their position in the training split, so that deleting the
    split deletes every copy."""

    sample = models.ForeignKey(ScoreSample, models.CASCADE, related_name="tracings")
    model = models.ForeignKey(RewardModel, models.CASCADE, related_name="+")
    result = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sample", "model"], name="tracing_once")]

    def __str__(self) -> str:
        return f"tracing {self.pk} of sample {self.sample_id}"
