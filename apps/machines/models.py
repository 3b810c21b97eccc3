"""Joined machines: computers elsewhere that train runs of this installation over HTTPS, and the tokens to join with."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User


class JoinToken(models.Model):
    """Joins one machine, once. project: the only one whose runs the machine gets; null: all of the installation.

    created_by: null for the command line. hash: SHA-256 of the token, which is nowhere else.
    """

    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="join_tokens")
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.prefix

    @property
    def is_open(self) -> bool:
        return self.used_at is None and self.revoked_at is None and self.expires_at > timezone.now()


class Machine(models.Model):
    """project, joined_by: those of its join token. device, gpus, version, code_hash: as the machine says."""

    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="machines")
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.CharField(max_length=64, unique=True)  # SHA-256 of the machine's key
    device = models.CharField(max_length=120)
    gpus = models.PositiveSmallIntegerField()
    version = models.CharField(max_length=120)
    code_hash = models.CharField(max_length=64)
    joined_by = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
    joined_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def is_silent(self) -> bool:
        return timezone.now() - self.last_seen_at > timedelta(seconds=settings.MACHINE_LEASE_SECONDS)


class MachineJobState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    ENDED = "ended", "Ended"  # exit_status tells how
    LOST = "lost", "Lost"  # its machine was not heard of, or claimed another job
    CANCELLED = "cancelled", "Cancelled"


class MachineJob(models.Model):
    """A submission of a run that waits for a machine or trains on one. Its row goes when the submission is over.

    name: that of the submission. run: `project/number`, for pages. files: the path of the run's files. secret: the
    token for them, encrypted. heartbeat_at: when its machine last reported it.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="machine_jobs")
    name = models.CharField(max_length=60, unique=True)
    run = models.CharField(max_length=100)
    files = models.CharField(max_length=200)
    secret = models.TextField()
    processes = models.PositiveSmallIntegerField()
    gpus = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=MachineJobState, default=MachineJobState.QUEUED)
    machine = models.ForeignKey(Machine, models.CASCADE, null=True, related_name="jobs")
    cancel_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(null=True)
    exit_status = models.SmallIntegerField(null=True)
    log = models.TextField(default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["machine"],
                condition=models.Q(state=MachineJobState.RUNNING),
                name="machine_trains_one_job",
            )
        ]

    def __str__(self) -> str:
        return self.name
