"""Retraining cycles of an endpoint, their model comparisons, and the follow-ups that annotators are asked for."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation.models import Campaign, Item
from apps.core.jobs.job_queue import Job
from apps.datasets.models import DatasetVersion
from apps.monitoring.models import Alert
from apps.rewards.models import Endpoint, Release
from apps.training.models import RewardModel, TrainingRun


class FollowUp(models.Model):
    """Sampled trajectories that annotators are asked to compare. items: keys of the campaign's items.

    samples: {trajectory: sample}, by key, of the trajectories that were scored.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="follow_ups")
    alert = models.ForeignKey(Alert, models.SET_NULL, null=True, related_name="follow_ups")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="follow_ups")
    items = ArrayField(models.BigIntegerField())
    samples = models.JSONField(default=dict)
    requested_by = models.ForeignKey(User, models.SET_NULL, null=True)
    requested_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{len(self.items)} comparisons about {self.endpoint}"

    @property
    def completed_count(self) -> int:
        """Items that have all the annotations they need."""
        return (
            Item.objects.filter(pk__in=self.items).filter(Q(completed_count__gte=models.F("overlap"))).count()
        )


class RetrainingCycle(models.Model):
    """Select, annotate, freeze, train, compare, release.

    previous_model: the model that was served at the start. requested_comparisons: asked of annotators, 0 for none.
    heads_only: the backbone stays frozen, see the recipe's key. staged_release: shadow and canary before promotion.
    automatic: each stage follows automatically; otherwise a user confirms it. awaits_confirmation: the stage is
    complete, or its comparison unclear, and waits for that. stage_times: when each stage was entered. reason: why it
    stopped, waits, or how it ended.
    """

    class Stage(models.TextChoices):
        ASKING = "asking", "Annotation"
        FREEZING = "freezing", "Dataset freeze"
        TRAINING = "training", "Training"
        COMPARING = "comparing", "Model comparison"
        TRYING = "trying", "Release"
        DONE = "done", "Promoted"
        STOPPED = "stopped", "Stopped"

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="retraining_cycles")
    previous_model = models.ForeignKey(RewardModel, models.CASCADE, related_name="+")
    stage = models.CharField(max_length=10, choices=Stage.choices)
    requested_comparisons = models.PositiveIntegerField(default=0)
    heads_only = models.BooleanField(default=True)
    staged_release = models.BooleanField(default=True)
    automatic = models.BooleanField(default=False)
    awaits_confirmation = models.BooleanField(default=False)
    follow_up = models.ForeignKey(FollowUp, models.SET_NULL, null=True, related_name="retraining_cycles")
    dataset_version = models.ForeignKey(
        DatasetVersion, models.SET_NULL, null=True, related_name="retraining_cycles"
    )
    training_run = models.ForeignKey(
        TrainingRun, models.SET_NULL, null=True, related_name="retraining_cycles"
    )
    release = models.ForeignKey(Release, models.SET_NULL, null=True, related_name="retraining_cycles")
    stage_times = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"], condition=models.Q(ended_at=None), name="one_open_retraining_cycle"
            )
        ]

    def __str__(self) -> str:
        return f"retraining cycle {self.pk} of {self.endpoint}"

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class ModelComparison(Job):
    """The new model of a cycle against the previous one, on the test splits of dataset versions.

    result: of each {snapshot, evaluation, difference, interval, n, tasks}, of the report's `against`.
    """

    cycle = models.OneToOneField(RetrainingCycle, models.CASCADE, related_name="model_comparison")
    dataset_versions = models.ManyToManyField(DatasetVersion, related_name="+")
    result = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"model comparison of retraining cycle {self.cycle_id}"
