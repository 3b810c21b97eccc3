"""LLM judges, their runs over a campaign, and what they answered."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation.models import Campaign, Item
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.rubrics.models import Criterion, Rubric
from apps.trajectories.models import Trajectory, TrajectoryFact


class Judge(models.Model):
    """A language model that judges by a rubric. A judge never changes: agreement is measured for it as it is.

    rubric: the criteria that trajectories are scored by; a judge that compares may have none, and then compares overall
    only; one that labels steps may have none, and reads the criteria as what matters. guidelines: the same text as
    people read. samples: answers that are averaged. prompt: the default version of the prompts, which a run may
    override. llm_connection: None once that was deleted. approach: what precedes the verdict, see `workers.judge`.
    window: of a judge of steps, how many are labelled together, seen alone; 0: each step, in its trajectory.
    """

    class Mode(models.TextChoices):
        SCORE = "score", "Score each trajectory by the rubric"
        COMPARE = "compare", "Choose the better of two trajectories"
        STEPS = "steps", "Label each agent step of a trajectory"

    class Approach(models.TextChoices):
        DIRECT = "direct", "Judge directly"
        DEBATE = "debate", "Hear an advocate for each trajectory first"
        RUBRIC_FIRST = "rubric_first", "Write a rubric for the task first"

    project = models.ForeignKey(Project, models.CASCADE, related_name="judges")
    name = models.CharField(max_length=100)
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="judges")
    rubric = models.ForeignKey(Rubric, models.PROTECT, null=True, blank=True, related_name="judges")
    mode = models.CharField(max_length=10, choices=Mode)
    approach = models.CharField(
        max_length=12, choices=Approach, default=Approach.DIRECT, db_default=Approach.DIRECT
    )
    guidelines = models.TextField(blank=True)
    samples = models.PositiveSmallIntegerField(default=1)
    prompt = models.PositiveSmallIntegerField(default=1)
    window = models.PositiveSmallIntegerField(default=0, db_default=0)
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
        """The judge's name among annotators. No person's name has this prefix."""
        return f"judge:{self.name}"

    @property
    def fact_kind(self) -> str:
        """The kind of the judge's scores among the facts that the explorer filters by."""
        return f"{TrajectoryFact.BY_JUDGE}{self.pk}"

    @property
    def criteria(self) -> list[Criterion | None]:
        """The criteria it answers for, in order; None is the overall comparison."""
        criteria: list[Criterion | None] = []
        if self.rubric is not None:
            criteria += [entry.criterion for entry in self.rubric.entries.select_related("criterion")]
        return [*criteria, None] if self.mode == self.Mode.COMPARE else criteria


class JudgeRun(Job):
    """One pass of a judge over the items of a campaign, or, as a test, over a few trajectories.

    prompt: version of the prompts. max_items: None for all; items that people annotated come first. saves_annotations:
    whether the results are saved as annotations of the campaign; annotations_saved_at: when they were.
    result: {"prompts": [...], "usage": {...}, "pictures": {"shown", "total"}}.
    """

    judge = models.ForeignKey(Judge, models.CASCADE, related_name="runs")
    campaign = models.ForeignKey(Campaign, models.CASCADE, null=True, blank=True, related_name="judge_runs")
    prompt = models.PositiveSmallIntegerField()
    max_items = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    saves_annotations = models.BooleanField(default=False)
    annotations_saved_at = models.DateTimeField(null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"judge run {self.pk}"

    @property
    def is_test(self) -> bool:
        return self.campaign_id is None


class JudgeResult(models.Model):
    """A trajectory, or a pair of them, and the judge's answer. It is deleted with its subject.

    item: None in a test. other_trajectory: B, where two are compared. answer: by criterion, as `workers.judge.rubric`
    returns it, or by agent step, as `workers.judge.steps` does. written_rubric: items and weights, where the judge
    wrote a rubric for the task first. problem: why there is no answer. pictures: how
    many the trajectories have (`total`), and how many of these the judge was shown; empty without pictures.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    judge_run = models.ForeignKey(JudgeRun, models.CASCADE, related_name="results")
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="judge_results")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="judge_results")
    other_trajectory = models.ForeignKey(
        Trajectory, models.CASCADE, null=True, related_name="judge_results_as_other"
    )
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    answer = models.JSONField(null=True)
    written_rubric = models.JSONField(default=list, db_default=[])
    problem = models.TextField(blank=True)
    pictures = models.JSONField(default=dict, db_default={})

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judge_run", "item", "trajectory"], nulls_distinct=False, name="judged_once"
            ),
            models.CheckConstraint(
                condition=Q(state="done", answer__isnull=False) | ~Q(state="done"), name="judged_has_answer"
            ),
        ]
        indexes = [models.Index(fields=["judge_run", "state"], name="judged_state")]

    def __str__(self) -> str:
        return f"{self.judge_run_id}: {self.trajectory_id}"
