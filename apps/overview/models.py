"""What a person chose for the home of a project."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User


class ChecklistDismissal(models.Model):
    """The person does not want to see the project's checklist."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="checklist_dismissal_once")]

    def __str__(self) -> str:
        return f"checklist of {self.project} dismissed by {self.user}"
