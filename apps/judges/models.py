"""Language models that a project may ask, and what they answered."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation.kinds.comment import Comment
from apps.trajectories.models import Trajectory

LONGEST_URL = 500
ANSWER_TOKENS = 4096


class LanguageModel(models.Model):
    """A model of a server that speaks OpenAI's chat completions, or one in a folder that GPU workers can read.

    key: encrypted. folder: of `save_pretrained`; then there is no address. answer_tokens: how
    long an answer may get. Prices are of a million tokens, and like monthly_limit in whatever the server's owner bills
    in; None: not known, none. next_call_at: when the next call may be made, where calls_per_minute says how many.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="language_models")
    name = models.CharField(max_length=100)
    base_url = models.CharField(max_length=LONGEST_URL, blank=True)
    model = models.CharField(max_length=200, blank=True)
    folder = models.CharField(max_length=LONGEST_URL, blank=True)
    key = models.TextField(blank=True)
    answer_tokens = models.PositiveIntegerField(default=ANSWER_TOKENS)
    prompt_price = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    completion_price = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    monthly_limit = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    calls_per_minute = models.PositiveIntegerField(null=True, blank=True)
    next_call_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="language_model_name_once"),
            models.CheckConstraint(
                condition=(Q(base_url="") & ~Q(folder="")) | (~Q(base_url="") & Q(folder="")),
                name="language_model_one_place",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_local(self) -> bool:
        return bool(self.folder)


class Spending(models.Model):
    """What was asked of a language model on a day (UTC), and what that cost at most.

    name: of the model, which may be gone. cost: of answers by the tokens that the server counted; of calls whose answer
    never came, all that it could have cost. failed: calls without an answer.
    """

    class Purpose(models.TextChoices):
        TRIAL = "trial", "Trying it"
        METRICS = "metrics", "Inducing metrics"
        JUDGING = "judging", "Judging"
        ENDPOINT = "endpoint", "Endpoints"

    project = models.ForeignKey(Project, models.CASCADE, related_name="spendings")
    language_model = models.ForeignKey(
        LanguageModel, models.SET_NULL, null=True, blank=True, related_name="spendings"
    )
    name = models.CharField(max_length=100)
    day = models.DateField()
    purpose = models.CharField(max_length=10, choices=Purpose)
    calls = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0)

    class Meta:
        ordering = ["-day", "name", "purpose"]
        constraints = [
            models.UniqueConstraint(fields=["language_model", "day", "purpose"], name="spending_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.day}"


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
