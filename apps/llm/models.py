"""Connections to language models, what their calls cost, and the completions that are cached."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.storage.encryption import LOST

LONGEST_URL = 500
ANSWER_TOKENS = 4096


class LLMConnection(models.Model):
    """A model of a server that speaks OpenAI's chat completions, or one in a folder that the operator lists.

    key: encrypted. folder: its name in TOUCHSTONE_MODEL_DIRS; then there is no address. answer_tokens: how
    long an answer may get. Prices are of a million tokens, and like monthly_limit in whatever the server's owner bills
    in; None: not known, none. next_call_at: when the next call may be made, where calls_per_minute says how many.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="llm_connections")
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
    def is_key_lost(self) -> bool:
        return self.key == LOST

    @property
    def is_local(self) -> bool:
        return bool(self.folder)


class SpendingPurpose(models.TextChoices):
    TEST = "trial", "Connection tests"
    METRICS = "metrics", "Metric extraction"
    JUDGE_RUNS = "judging", "Judge runs"
    ENDPOINTS = "endpoint", "Endpoints"


class Spending(models.Model):
    """What was asked of a language model on a day (UTC), and what that cost at most.

    name: of the model, which may be gone. cost: of answers by the tokens that the server counted; of calls whose answer
    never came, all that it could have cost. failed: calls without an answer.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="spendings")
    llm_connection = models.ForeignKey(
        LLMConnection, models.SET_NULL, null=True, blank=True, related_name="spendings"
    )
    name = models.CharField(max_length=100)
    day = models.DateField()
    purpose = models.CharField(max_length=10, choices=SpendingPurpose)
    calls = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0)

    class Meta:
        ordering = ["-day", "name", "purpose"]
        constraints = [
            models.UniqueConstraint(fields=["llm_connection", "day", "purpose"], name="spending_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.day}"


class CachedCompletion(models.Model):
    """A completion that was accepted, so that the same question is paid for once. It is deleted with its subject.

    key: the SHA-256 of the question (workers.llm.client). comment, trajectory, other_trajectory: the subject. They are
    named as text since their apps are above this one.
    """

    llm_connection = models.ForeignKey(LLMConnection, models.CASCADE, related_name="completions")
    key = models.CharField(max_length=64)
    answer = models.JSONField()
    comment = models.ForeignKey("annotation.Comment", models.CASCADE, null=True, related_name="+")
    trajectory = models.ForeignKey("trajectories.Trajectory", models.CASCADE, null=True, related_name="+")
    other_trajectory = models.ForeignKey(
        "trajectories.Trajectory", models.CASCADE, null=True, related_name="+"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["llm_connection", "key"], name="answer_once")]

    def __str__(self) -> str:
        return self.key[:8]
