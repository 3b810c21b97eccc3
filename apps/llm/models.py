"""LLM connections, spending by day, and cached completions."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.storage.encryption import LOST

LONGEST_URL = 500
ANSWER_TOKENS = 4096
MAX_PICTURES, PICTURE_PIXELS, PICTURE_TOKENS = 8, 768, 1600


class LLMConnection(models.Model):
    """How to reach a language model: on a server with OpenAI's chat completions API, or in a folder of this machine.

    key: encrypted. folder: a name from TOUCHSTONE_MODEL_DIRS; such a connection has no address. answer_tokens: the
    maximum of output tokens. Prices are per million tokens, in the same currency as monthly_limit; None: not set.
    next_call_at: the earliest time of the next call, where calls_per_minute is set. max_pictures: of one call, where
    the model reads pictures; picture_pixels: of their longer side; picture_tokens: the most that one counts as.
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
    reads_pictures = models.BooleanField(default=False, db_default=False)
    max_pictures = models.PositiveSmallIntegerField(default=MAX_PICTURES, db_default=MAX_PICTURES)
    picture_pixels = models.PositiveSmallIntegerField(default=PICTURE_PIXELS, db_default=PICTURE_PIXELS)
    picture_tokens = models.PositiveIntegerField(default=PICTURE_TOKENS, db_default=PICTURE_TOKENS)
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
    def pictures_per_call(self) -> int:
        """0 where it reads none."""
        return self.max_pictures if self.reads_pictures else 0

    @property
    def is_local(self) -> bool:
        return bool(self.folder)


class SpendingPurpose(models.TextChoices):
    TEST = "trial", "Connection tests"
    METRICS = "metrics", "Metric extraction"
    JUDGE_RUNS = "judging", "Judge runs"
    ENDPOINTS = "endpoint", "Endpoints"
    QUESTIONS = "questions", "Questions about trajectories"
    PROGRAMS = "programs", "Drafts of reward programs"
    SUBGOALS = "subgoals", "Proposals of subgoals"
    HINDSIGHT = "hindsight", "Proposals of hindsight tasks"
    POLICIES = "policies", "Rules of policy documents"


class Spending(models.Model):
    """Calls through one connection on one day (UTC) for one purpose, and their cost.

    name: of the connection, which may have been deleted. cost: by the tokens that the server counted; the most a call
    could have cost, where no reply arrived. failed: calls without a completion.
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
