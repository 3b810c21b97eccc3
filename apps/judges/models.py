"""Language models that a project may ask, what they answered, and judges made of them."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation.models import Campaign, Comment, Item
from apps.core.jobs.job_queue import Job
from apps.core.storage.encryption import LOST
from apps.rubrics.models import Criterion, Rubric
from apps.trajectories.models import Trajectory, TrajectoryFact

LONGEST_URL = 500
ANSWER_TOKENS = 4096


class LanguageModel(models.Model):
    """A model of a server that speaks OpenAI's chat completions, or one in a folder that the operator lists.

    key: encrypted. folder: its name in TOUCHSTONE_MODEL_DIRS; then there is no address. answer_tokens: how
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
    def is_key_lost(self) -> bool:
        return self.key == LOST

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
    other = models.ForeignKey(Trajectory, models.CASCADE, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["language_model", "key"], name="answer_once")]

    def __str__(self) -> str:
        return self.key[:8]


class Judge(models.Model):
    """A language model that judges by a rubric. It never changes; another is another judge.

    rubric: what runs are scored by; where they are compared it may be None, for overall only. guidelines: what it is
    told, as people are. samples: answers that are averaged. prompt: the version it is asked with, unless a judging says
    another. language_model: None once it was removed.
    """

    class Mode(models.TextChoices):
        SCORE = "score", "Score each run by the rubric"
        COMPARE = "compare", "Say which of two runs is better"

    project = models.ForeignKey(Project, models.CASCADE, related_name="judges")
    name = models.CharField(max_length=100)
    language_model = models.ForeignKey(LanguageModel, models.SET_NULL, null=True, related_name="judges")
    rubric = models.ForeignKey(Rubric, models.PROTECT, null=True, blank=True, related_name="judges")
    mode = models.CharField(max_length=10, choices=Mode)
    guidelines = models.TextField(blank=True)
    samples = models.PositiveSmallIntegerField(default=1)
    prompt = models.PositiveSmallIntegerField(default=1)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="judge_name_once"),
            models.CheckConstraint(
                condition=~Q(mode="score") | Q(rubric__isnull=False), name="judge_scores_by_rubric"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def annotator_name(self) -> str:
        """What it is called among annotators: no person's name has a colon so."""
        return f"judge:{self.name}"

    @property
    def fact_kind(self) -> str:
        """Of what the explorer knows of its scores."""
        return f"{TrajectoryFact.BY_JUDGE}{self.pk}"

    @property
    def asks(self) -> list[Criterion | None]:
        """What it judges by, in order; None is overall."""
        found: list[Criterion | None] = []
        if self.rubric is not None:
            found += [entry.criterion for entry in self.rubric.entries.select_related("criterion")]
        return [*found, None] if self.mode == self.Mode.COMPARE else found


class Judging(Job):
    """One going through of items of a campaign, or, as a trial, of a few runs.

    prompt: version of the prompts. most: items at most, those first that people judged. hands_in: whether its answers
    become judgements of the campaign; handed_in_at: when they did. result: {"prompts": [...], "usage": {...}}.
    """

    judge = models.ForeignKey(Judge, models.CASCADE, related_name="judgings")
    campaign = models.ForeignKey(Campaign, models.CASCADE, null=True, blank=True, related_name="judgings")
    prompt = models.PositiveSmallIntegerField()
    most = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    hands_in = models.BooleanField(default=False)
    handed_in_at = models.DateTimeField(null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"judging {self.pk}"

    @property
    def is_trial(self) -> bool:
        return self.campaign_id is None


class Judged(models.Model):
    """A run, or two, and what the judge says. It goes with what it is about.

    item: None in a trial. other: run b, where two are compared. answer: by criterion, as `workers.judge.rubric` has it.
    problem: why there is no answer.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    judging = models.ForeignKey(Judging, models.CASCADE, related_name="judged")
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="judged")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="judged")
    other = models.ForeignKey(Trajectory, models.CASCADE, null=True, related_name="judged_as_other")
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    answer = models.JSONField(null=True)
    problem = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judging", "item", "trajectory"], nulls_distinct=False, name="judged_once"
            ),
            models.CheckConstraint(
                condition=Q(state="done", answer__isnull=False) | ~Q(state="done"), name="judged_has_answer"
            ),
        ]
        indexes = [models.Index(fields=["judging", "state"], name="judged_state")]

    def __str__(self) -> str:
        return f"{self.judging_id}: {self.trajectory_id}"
