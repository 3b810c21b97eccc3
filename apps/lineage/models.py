"""Which judgements moved a served reward, once somebody asked."""

from django.db import models

from apps.core.jobs.job_queue import Job
from apps.rewards.models import ScoreSample
from apps.training.models import RewardModel


class Tracing(Job):
    """result: of `workers.influence`: judgements by their place in the training split, so that what is deleted from
    there is nowhere else."""

    sample = models.ForeignKey(ScoreSample, models.CASCADE, related_name="tracings")
    model = models.ForeignKey(RewardModel, models.CASCADE, related_name="+")
    result = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sample", "model"], name="tracing_once")]

    def __str__(self) -> str:
        return f"tracing {self.pk} of sample {self.sample_id}"
