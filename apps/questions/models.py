"""Questions about trajectories, and what a language model answered for each of them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.trajectories.models import Trajectory


class TrajectoryQuestion(Job):
    """A question that is asked of each of some trajectories; its answers are sorted into categories at the end.

    query: the filter, as the explorer's address has it. matching: how many trajectories passed it; where that is more
    than there are answers, these are a random sample. llm_connection: None once that was deleted.
    result: {"usage": {...}, "prompts": [...], "categories": [{"name", "definition"}]}.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="trajectory_questions")
    text = models.CharField(max_length=500)
    query = models.TextField(blank=True)
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="questions")
    max_categories = models.PositiveSmallIntegerField(default=8)
    matching = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["project", "-id"], name="question_by_project")]

    def __str__(self) -> str:
        return f"question {self.pk}"


class QuestionAnswer(models.Model):
    """The answer for one trajectory; deleted with it.

    label: the answer as a short phrase; empty where the question does not apply. steps: indices of the steps that show
    it. category: a place in the question's categories. problem: why there is no answer.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    question = models.ForeignKey(TrajectoryQuestion, models.CASCADE, related_name="answers")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="question_answers")
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    label = models.CharField(max_length=200, blank=True)
    explanation = models.TextField(blank=True)
    steps = ArrayField(models.PositiveIntegerField(), default=list)
    category = models.PositiveSmallIntegerField(null=True)
    problem = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question", "trajectory"], name="question_answered_once"),
            models.CheckConstraint(
                condition=~Q(state="done") | ~Q(explanation=""), name="question_answer_explained"
            ),
        ]
        indexes = [models.Index(fields=["question", "category"], name="question_answer_category")]

    def __str__(self) -> str:
        return f"{self.question_id}: {self.trajectory_id}"
