"""What trajectories are judged by: named, defined, versioned criteria."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project


class Criterion(models.Model):
    """A used version never changes; editing makes the next version."""

    class Origin(models.TextChoices):
        HUMAN = "human"
        INDUCED = "induced"
        IMPORTED = "imported"

    project = models.ForeignKey(Project, models.CASCADE, related_name="criteria")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1)
    definition = models.TextField(blank=True)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.HUMAN)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "criteria"
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="criterion_version_once")
        ]

    def __str__(self) -> str:
        return self.name
