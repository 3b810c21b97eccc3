"""Endpoints and their revisions: what is deployed, what was, and who switched it."""

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
