"""The monitor of an endpoint, its readings, its alerts, and the emails about them."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import User
from apps.rewards.models import Endpoint, ScoreSample


class Monitor(models.Model):
    """rules: see `rules.Rule`. last_sample: the newest that was checked. email_recipients: of every alert.
    retrain_after: verified samples after which a retraining cycle starts automatically; 0 never.
    last_learned_sample: the newest sample that the verifier's comparisons were made from.
    """

    endpoint = models.OneToOneField(Endpoint, models.CASCADE, related_name="monitor")
    rules = models.JSONField(default=list)
    last_sample = models.BigIntegerField(default=0)
    checked_at = models.DateTimeField(null=True)
    email_recipients = models.ManyToManyField(User, related_name="monitors")
    retrain_after = models.PositiveIntegerField(default=0)
    last_learned_sample = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"the monitor of {self.endpoint}"


class Reading(models.Model):
    """The measures of a window of samples. values: {measure: {"value", "baseline", "margin"}}. count: of samples.

    reward, root_kl, gold: means over the window; None where no sample has them. policy_version: the newest.
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
    """A broken rule, raised once for each version and run: it is not raised again after it was closed.

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


class AlertEmail(models.Model):
    """An email about an alert to one person. next_at: the next attempt; None once it is sent or given up.
    error: why the last attempt failed."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="emails")
    user = models.ForeignKey(User, models.CASCADE, related_name="alert_emails")
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True, default=timezone.now, db_index=True)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["alert", "user"], name="alert_email_once")]

    def __str__(self) -> str:
        return f"alert email {self.pk}"
