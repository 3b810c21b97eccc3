"""Connectors to stores of traces and files, their runs, and the documents that they brought in."""

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job
from apps.core.storage.encryption import LOST
from apps.trajectories.models import Trajectory

LONGEST_URL = 500


class Connector(models.Model):
    """Where trajectories are pulled from, and scores are pushed back to.

    kind: a name of `sources.KINDS`. username, secret: of the peer, whatever it calls them; the secret is encrypted.
    options: of the kind. cursor: how far the pull is, in the terms of the kind. next_run_at: None: only on demand.
    settle_minutes: how long a trace must have been quiet to be taken. overlap_minutes: how far before the newest trace
    that was taken each run looks again. push_endpoint: name of the endpoint whose rewards are pushed.
    """

    class State(models.TextChoices):
        ACTIVE = "active", "Active"
        PAUSED = "paused", "Paused"

    project = models.ForeignKey(Project, models.CASCADE, related_name="connectors")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20)
    address = models.CharField(max_length=LONGEST_URL, blank=True)
    username = models.CharField(max_length=500, blank=True)
    secret = models.TextField(blank=True)
    options = models.JSONField(default=dict)
    settle_minutes = models.PositiveIntegerField(default=5)
    overlap_minutes = models.PositiveIntegerField(default=60)
    every_minutes = models.PositiveIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.ACTIVE)
    cursor = models.JSONField(default=dict)
    push_endpoint = models.CharField(max_length=100, blank=True)
    push_after_pull = models.BooleanField(default=False)
    next_run_at = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="connector_name_once")]
        indexes = [
            models.Index(fields=["next_run_at"], condition=Q(next_run_at__isnull=False), name="connector_due")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_secret_lost(self) -> bool:
        return self.secret == LOST

    @property
    def is_paused(self) -> bool:
        return self.state == self.State.PAUSED


class ConnectorRun(Job):
    """One pull of a connector, or one push of scores.

    created, duplicates, updated: trajectories, as an import counts them. rejected: the first of rejected_count records
    that were refused, [{"source", "line", "pointer", "message"}]. waiting: traces that were not quiet yet. pushed,
    unchanged: scores that were sent, and those that the peer has already.
    """

    class Direction(models.TextChoices):
        PULL = "pull", "Pull"
        PUSH = "push", "Push"

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="runs")
    direction = models.CharField(max_length=4, choices=Direction, default=Direction.PULL)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True)
    documents = models.PositiveIntegerField(default=0)
    created = models.PositiveIntegerField(default=0)
    duplicates = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    rejected = models.JSONField(default=list)
    rejected_count = models.PositiveIntegerField(default=0)
    pushed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                F("connector"), condition=Q(state__in=["queued", "running"]), name="connector_one_run"
            )
        ]

    def __str__(self) -> str:
        return f"{self.direction} {self.pk} of {self.connector_id}"


class PulledDocument(models.Model):
    """A trace or a file of the peer. source_id: the peer's own id of it, or its digest where that is longer than the
    column. digest: of what was imported, so that the same again is seen to be the same. target: what the peer's scores
    are attached to."""

    SOURCE_LENGTH = 500

    class State(models.TextChoices):
        WAITING = "waiting"  # not quiet yet: asked for again by the next run
        IMPORTED = "imported"
        REJECTED = "rejected"

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="documents")
    source_id = models.CharField(max_length=SOURCE_LENGTH)
    state = models.CharField(max_length=10, choices=State)
    digest = models.CharField(max_length=64, blank=True)
    target = models.JSONField(default=dict)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connector", "source_id"], name="pulled_document_once")
        ]
        indexes = [
            models.Index(fields=["connector"], condition=Q(state="waiting"), name="pulled_document_waiting")
        ]

    def __str__(self) -> str:
        return self.source_id


class PulledTrajectory(models.Model):
    """A trajectory of a document. is_current: of the document as it was pulled last; the others are tagged."""

    document = models.ForeignKey(PulledDocument, models.CASCADE, related_name="trajectories")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="+")
    is_current = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "trajectory"], name="pulled_trajectory_once")
        ]

    def __str__(self) -> str:
        return f"{self.document_id}: {self.trajectory_id}"


class PushedScore(models.Model):
    """A score that the peer has of us. key: which, within the connector: its id at the peer is made of it. digest: of
    what was sent. remote_id: where the peer gives ids itself. version: of the endpoint, for its rewards."""

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="pushed_scores")
    document = models.ForeignKey(PulledDocument, models.CASCADE, related_name="scores")
    key = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    remote_id = models.CharField(max_length=200, blank=True)
    version = models.PositiveIntegerField(null=True)
    pushed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["connector", "key"], name="pushed_score_once")]

    def __str__(self) -> str:
        return self.key
