"""The version of an agent that its later ones are compared with, where someone chose it."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User


class AgentReference(models.Model):
    """Without one, the oldest version of the agent is the reference."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="agent_references")
    agent_name = models.CharField(max_length=200, blank=True)
    agent_version = models.CharField(max_length=200, blank=True)
    chosen_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    chosen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "agent_name"], name="agent_reference_once")]

    def __str__(self) -> str:
        return f"{self.agent_name or 'unknown'} {self.agent_version}".strip()
