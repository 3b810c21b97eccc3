"""Language models that a project may ask, and what they answered."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation.kinds.comment import Comment
from apps.trajectories.models import Trajectory

LONGEST_URL = 500


class LanguageModel(models.Model):
    """A model of a server that speaks OpenAI's chat completions. key: encrypted; see `services.key_of`."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="language_models")
    name = models.CharField(max_length=100)
    base_url = models.CharField(max_length=LONGEST_URL)
    model = models.CharField(max_length=200)
    key = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="language_model_name_once")]

    def __str__(self) -> str:
        return self.name


class Answer(models.Model):
    """An answer that was accepted, so that the same need not be asked again. It goes with what it is about.

    key: the SHA-256 of what was asked (workers.judge.client).
    """

    language_model = models.ForeignKey(LanguageModel, models.CASCADE, related_name="answers")
    key = models.CharField(max_length=64)
    answer = models.JSONField()
    comment = models.ForeignKey(Comment, models.CASCADE, null=True, related_name="+")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["language_model", "key"], name="answer_once")]

    def __str__(self) -> str:
        return self.key[:8]
