"""Metrics extracted from comments: inductions, the metrics they propose, their points, and verdicts."""

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.annotation.models import Campaign, Comment
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory


class Induction(Job):
    """The extraction of metrics from comments, and later verdicts by its metrics after people changed them.

    campaign: None for the comments of the whole project. previous: the previous induction of the same comments, which
    this one is compared with. result: of `workers.induce`, without what people wrote. llm_connection: for the engine
    LLM; None once it was deleted.
    """

    class Engine(models.TextChoices):
        EMBEDDED = "embedded", "Embedded engine (sentence embeddings)"
        LLM = "llm", "Language model"

    project = models.ForeignKey(Project, models.CASCADE, related_name="inductions")
    number = ProjectNumberField()
    campaign = models.ForeignKey(Campaign, models.CASCADE, null=True, blank=True, related_name="inductions")
    engine = models.CharField(max_length=10, choices=Engine, default=Engine.EMBEDDED)
    llm_connection = models.ForeignKey(
        LLMConnection, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    seed = models.PositiveIntegerField(default=0)
    previous = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="induction_number"),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(state__in=["queued", "running"]),
                name="induction_one_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"induction {self.pk}"

    @property
    def engine_name(self) -> str:
        """The engine and its language model, in words."""
        if self.engine == self.Engine.EMBEDDED:
            return self.Engine.EMBEDDED.label
        name = self.llm_connection.name if self.llm_connection else self.result.get("model", "")
        return f"{self.Engine.LLM.label} {name or '(deleted)'}"


class Metric(models.Model):
    """A proposed metric, and what people decided about it.

    definition: as a person wrote it; while it is empty, examples define the metric. previous: the same metric in the
    previous induction. merged_into: the metric that has its points now. criterion: what it was accepted as.
    """

    class State(models.TextChoices):
        PROPOSED = "proposed"
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        MERGED = "merged"

    induction = models.ForeignKey(Induction, models.CASCADE, related_name="metrics")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    definition = models.TextField(blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    criterion = models.ForeignKey(Criterion, models.SET_NULL, null=True, related_name="induced")
    previous = models.ForeignKey("self", models.SET_NULL, null=True, related_name="after")
    merged_into = models.ForeignKey("self", models.SET_NULL, null=True, related_name="merged")

    class Meta:
        ordering = ["induction", "position"]
        constraints = [
            models.UniqueConstraint(fields=["induction", "position"], name="metric_position_once"),
            models.UniqueConstraint(fields=["induction", "name"], name="metric_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Aspect(models.Model):
    """A point of a comment, tied to a step of the agent. It is deleted with its comment and its trajectory.

    step: a `step` index. example: 0 for the most typical point of its side of the metric, then 1, ...
    x, y: position on the comment map.
    """

    induction = models.ForeignKey(Induction, models.CASCADE, related_name="aspects")
    metric = models.ForeignKey(Metric, models.SET_NULL, null=True, related_name="aspects")
    comment = models.ForeignKey(Comment, models.CASCADE, related_name="aspects")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="aspects")
    number = models.PositiveIntegerField()  # its id in the files of the child
    feedback = models.TextField()
    behaviour = models.TextField(blank=True)
    sign = models.SmallIntegerField()
    step = models.PositiveIntegerField(null=True)
    chance = models.FloatField(null=True)
    covered = models.BooleanField()
    example = models.PositiveSmallIntegerField(null=True)
    x = models.FloatField()
    y = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["induction", "number"], name="aspect_number_once"),
            models.CheckConstraint(condition=Q(sign__in=[-1, 1]), name="aspect_sign"),
        ]

    def __str__(self) -> str:
        return self.feedback[:60]


class MetricVerdict(models.Model):
    """The verdict of a metric on a trajectory. sign: 1 kept, -1 violated, 0 does not apply.

    value: the chance of praise minus the chance of blame; the sign, where a language model judged. because: the most
    similar point, or None. reason: in the language model's words.
    """

    metric = models.ForeignKey(Metric, models.CASCADE, related_name="verdicts")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="verdicts")
    sign = models.SmallIntegerField()
    value = models.FloatField()
    step = models.PositiveIntegerField(null=True)
    because = models.ForeignKey(Aspect, models.SET_NULL, null=True, related_name="+")
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["metric", "trajectory"], name="verdict_once"),
            models.CheckConstraint(condition=Q(sign__in=[-1, 0, 1]), name="verdict_sign"),
        ]

    def __str__(self) -> str:
        return f"{self.sign} of {self.metric_id} on {self.trajectory_id}"
