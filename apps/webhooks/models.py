"""Webhooks: URLs that receive a project's events, and each delivery."""

import secrets
import uuid
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.accounts.models import Project, User
from apps.core.storage.encryption import LOST


class WebhookEvent(models.TextChoices):
    RUN_FINISHED = "run.finished", "A training run ended"
    CAMPAIGN_DONE = "campaign.done", "A campaign is complete"
    ALERT_RAISED = "alert.raised", "Something needs a person"
    JOB_FINISHED = (
        "job.finished",
        "Another job ended (import, export, freeze, judge run, bulk job, induction)",
    )
    ITEMS_ASSIGNED = "items.assigned", "Items were assigned to an annotator"


class MessageFormat(models.TextChoices):
    STANDARD = "standard", "Standard Webhooks (signed JSON)"
    SLACK = "slack", "Slack (a chat message; also Mattermost, Rocket.Chat and Discord with /slack)"


LONGEST_URL = 2000


def marked_host(url: str) -> str:
    """What is kept in the open of an address that is a secret."""
    parts = urlsplit(url)
    mark = salted_hmac("apps.webhooks.address", url, algorithm="sha256").hexdigest()[:16]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/#{mark}"


TEST = "test"  # what the button sends; never subscribed to


def new_salt() -> str:
    """Named by the first migration only."""
    return secrets.token_hex(16)


class Webhook(models.Model):
    """secret: what its messages are signed by, encrypted. A chat tool reads no signature: its URL is the secret, so
    `address` has it, encrypted, and `url` only its host and a mark that tells two of them apart."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=LONGEST_URL)
    events = ArrayField(models.CharField(max_length=30))
    format = models.CharField(max_length=10, choices=MessageFormat, default=MessageFormat.STANDARD)
    secret = models.TextField()
    address = models.TextField(default="")  # empty where `url` is the address
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "url"], name="webhook_once")]

    def __str__(self) -> str:
        return self.shown_url

    @property
    def is_secret_lost(self) -> bool:
        return LOST in (self.secret, self.address)

    @property
    def shown_url(self) -> str:
        """For pages and the API."""
        return f"{self.url.partition('#')[0]}…" if self.address else self.url

    @property
    def host(self) -> str:
        """For the trail: what follows it may be someone's secret."""
        return urlsplit(self.url).netloc


class Delivery(models.Model):
    """One event for one address: tried until it is taken, or until the last of the waits is over."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event_id = models.UUIDField(default=uuid.uuid4)  # the same for every address that hears of it
    type = models.CharField(max_length=30)
    data = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True, default=timezone.now)  # None: no more attempts
    delivered_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=300, blank=True)  # to the last attempt, or why there was none

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at"], condition=models.Q(next_at__isnull=False), name="delivery_waiting"
            ),
            models.Index(fields=["webhook", "-created_at"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"

    @property
    def state(self) -> str:
        """In the words of jobs, for the page."""
        if self.delivered_at is not None:
            return "succeeded"
        return "queued" if self.next_at is not None else "failed"
