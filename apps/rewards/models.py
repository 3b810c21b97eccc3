"""Endpoints and their revisions: what is deployed, what was, and who switched it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.training.models import RewardModel


class Endpoint(models.Model):
    """Unique per installation: trainers name it in a URL without a project."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="endpoints")
    name = models.SlugField(max_length=60, unique=True)
    active = models.ForeignKey("EndpointRevision", models.PROTECT, null=True, related_name="+")
    switched_off = models.BooleanField(default=False)
    switched_off_reason = models.TextField(blank=True)
    keeps_samples = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class EndpointRevision(models.Model):
    """Never changes once written. spec: {"components": [{"name", "type", "model", "weight"}], "transforms": [...]}."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    reward_models = models.ManyToManyField(RewardModel, through="RevisionModel", related_name="revisions")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "number"], name="revision_number_once")]

    def __str__(self) -> str:
        return f"{self.endpoint.name}@{self.number}"


class RevisionModel(models.Model):
    """A model a revision serves cannot be deleted."""

    revision = models.ForeignKey(EndpointRevision, models.CASCADE, related_name="uses")
    model = models.ForeignKey(RewardModel, models.PROTECT, related_name="uses")

    def __str__(self) -> str:
        return f"the endpoint {self.revision}"


class ScoreRollup(models.Model):
    """What was asked within an hour, of one version, by one caller, of one training run and policy: see `usage.Tally`.

    version 0: no version answered. Rows are added to by every replica.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="rollups")
    hour = models.DateTimeField()
    version = models.PositiveIntegerField()
    caller = models.CharField(max_length=40)
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    requests = models.BigIntegerField(default=0)
    items = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    repeated = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    overloaded = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    uncertain = models.BigIntegerField(default=0)
    truncated = models.BigIntegerField(default=0)
    reward_sum = models.FloatField(default=0.0)
    reward_squares = models.FloatField(default=0.0)
    latency = ArrayField(models.BigIntegerField())
    rewards = ArrayField(models.BigIntegerField())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "hour", "version", "caller", "run", "policy_version"],
                name="score_rollup_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.hour:%Y-%m-%d %H}h {self.caller}"


class ScoreReceipt(models.Model):
    """Something that is counted once: a request that its sender may repeat, or a batch of counts. Kept for an hour."""

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return str(self.id)


class ScoreSample(models.Model):
    """A request as it came, with its answer, where the endpoint keeps samples. item: as of the reward API."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="samples")
    version = models.PositiveIntegerField()
    caller = models.CharField(max_length=40)
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    item = models.JSONField()
    result = models.JSONField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["endpoint", "-at"], name="score_sample_newest")]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.at:%Y-%m-%d %H:%M:%S}"
