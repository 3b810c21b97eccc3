"""What is watched of an endpoint, what was read, and what needs a person."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation.models import Campaign, Item
from apps.core.jobs.job_queue import Job
from apps.datasets.models import DatasetVersion
from apps.rewards.models import Endpoint, Release, ScoreSample
from apps.training.models import RewardModel, TrainingRun


class Monitor(models.Model):
    """rules: see `rules.Rule`. last_sample: the newest that was looked at. told: who is told of alerts by mail.
    online_every: verified samples after which a turn begins by itself; 0 never. learnt_to: the newest learnt from.
    """

    endpoint = models.OneToOneField(Endpoint, models.CASCADE, related_name="monitor")
    rules = models.JSONField(default=list)
    last_sample = models.BigIntegerField(default=0)
    looked_at = models.DateTimeField(null=True)
    told = models.ManyToManyField(User, related_name="monitors")
    online_every = models.PositiveIntegerField(default=0)
    learnt_to = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"the monitor of {self.endpoint}"


class Reading(models.Model):
    """What was measured of a window. values: {measure: {"value", "baseline", "margin"}}. count: rows of the window.

    reward, root_kl, gold: means over the window; None where nothing was said of them. policy_version: the newest.
    """

    monitor = models.ForeignKey(Monitor, models.CASCADE, related_name="readings")
    version = models.PositiveIntegerField()
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    values = models.JSONField()
    count = models.PositiveIntegerField()
    reward = models.FloatField()
    root_kl = models.FloatField(null=True)
    gold = models.FloatField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["monitor", "-at"], name="reading_newest")]

    def __str__(self) -> str:
        return f"{self.monitor} {self.at:%Y-%m-%d %H:%M}"


class Alert(models.Model):
    """A rule that was broken, once for each version and run: whoever has closed it is not told again.

    detail: a sentence. samples: the trajectories behind it.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="alerts")
    version = models.PositiveIntegerField()
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    rule = models.CharField(max_length=60)
    measure = models.CharField(max_length=40)
    value = models.FloatField()
    baseline = models.FloatField()
    limit = models.FloatField()
    margin = models.FloatField()
    count = models.PositiveIntegerField()
    detail = models.TextField()
    samples = models.ManyToManyField(ScoreSample, related_name="alerts")
    raised_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, models.SET_NULL, null=True)
    note = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "version", "run", "rule"], name="alert_once")
        ]
        indexes = [models.Index(fields=["endpoint", "-raised_at"], name="alert_newest")]

    def __str__(self) -> str:
        return self.detail

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


class Letter(models.Model):
    """Mail about an alert to one person, until it is sent. next_at: when it is tried; None once it is sent or given
    up. error: what kept it from being sent the last time."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="letters")
    user = models.ForeignKey(User, models.CASCADE, related_name="letters")
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True, default=timezone.now, db_index=True)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["alert", "user"], name="letter_once")]

    def __str__(self) -> str:
        return f"letter {self.pk}"


class FollowUp(models.Model):
    """Sampled trajectories that were put before people. items: keys of the campaign's items. alert: what for.

    samples: {trajectory: sample}, by key, of those that were scored.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="follow_ups")
    alert = models.ForeignKey(Alert, models.SET_NULL, null=True, related_name="follow_ups")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="follow_ups")
    items = ArrayField(models.BigIntegerField())
    samples = models.JSONField(default=dict)
    asked_by = models.ForeignKey(User, models.SET_NULL, null=True)
    asked_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{len(self.items)} comparisons about {self.endpoint}"

    @property
    def judged(self) -> int:
        """Items that have every judgement they want."""
        return (
            Item.objects.filter(pk__in=self.items).filter(Q(completed_count__gte=models.F("overlap"))).count()
        )


class Turn(models.Model):
    """Once around: people are asked, what they said is frozen and trained on, the model is compared, tried, promoted.

    against: the model that was served when it began. asks: comparisons people are asked for, 0 for none. heads_only:
    the trunk is held still, see the recipe's key. tries: whether the model is released in stages.
    automatic: each step follows by itself; else a person says `go on`. is_ready: a step is done, and waits for that.
    entered: when each stage was. reason: why it stopped, or how it ended.
    """

    class Stage(models.TextChoices):
        ASKING = "asking", "People judge"
        FREEZING = "freezing", "Feedback is frozen"
        TRAINING = "training", "A model is trained"
        COMPARING = "comparing", "It is compared"
        TRYING = "trying", "It is on trial"
        DONE = "done", "It answers"
        STOPPED = "stopped", "Stopped"

    ENDED = (Stage.DONE, Stage.STOPPED)

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="turns")
    against = models.ForeignKey(RewardModel, models.CASCADE, related_name="+")
    stage = models.CharField(max_length=10, choices=Stage.choices)
    asks = models.PositiveIntegerField(default=0)
    heads_only = models.BooleanField(default=True)
    tries = models.BooleanField(default=True)
    automatic = models.BooleanField(default=False)
    is_ready = models.BooleanField(default=False)
    follow_up = models.ForeignKey(FollowUp, models.SET_NULL, null=True, related_name="turns")
    dataset_version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="turns")
    run = models.ForeignKey(TrainingRun, models.SET_NULL, null=True, related_name="turns")
    trial = models.ForeignKey(Release, models.SET_NULL, null=True, related_name="turns")
    entered = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"], condition=models.Q(ended_at=None), name="one_open_turn"
            )
        ]

    def __str__(self) -> str:
        return f"turn {self.pk} of {self.endpoint}"

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class Comparing(Job):
    """The new model of a turn against the old one, on the test splits of dataset versions.

    result: of each {snapshot, evaluation, difference, interval, n}, of the report's `against`.
    """

    turn = models.OneToOneField(Turn, models.CASCADE, related_name="comparing")
    dataset_versions = models.ManyToManyField(DatasetVersion, related_name="+")
    result = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"comparison of turn {self.turn_id}"
