"""What is watched of an endpoint, what was read, and what needs a person."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation.models import Campaign, Item
from apps.rewards.models import Endpoint, ScoreSample


class Monitor(models.Model):
    """rules: see `rules.Rule`. last_sample: the newest that was looked at."""

    endpoint = models.OneToOneField(Endpoint, models.CASCADE, related_name="monitor")
    rules = models.JSONField(default=list)
    last_sample = models.BigIntegerField(default=0)
    looked_at = models.DateTimeField(null=True)

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


class FollowUp(models.Model):
    """Sampled trajectories that were put before people. items: keys of the campaign's items. alert: what for."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="follow_ups")
    alert = models.ForeignKey(Alert, models.SET_NULL, null=True, related_name="follow_ups")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="follow_ups")
    items = ArrayField(models.BigIntegerField())
    asked_by = models.ForeignKey(User, models.SET_NULL, null=True)
    asked_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{len(self.items)} comparisons about {self.endpoint}"

    @property
    def judged(self) -> int:
        """Items that have every judgement they want."""
        return Item.objects.filter(pk__in=self.items).filter(Q(done__gte=models.F("wanted"))).count()
