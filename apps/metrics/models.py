"""Metrics induced from what people wrote: each induction, what it proposes, what that rests on, and its verdicts."""

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project, User
from apps.annotation.models import Campaign, Comment
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory


class Induction(Job):
    """One induction, and every judging by its metrics after people changed them.

    campaign: whose comments, or those of the whole project. before: the last one of the same comments, which this one
    is held against. result: of `workers.induce`, without what people wrote. llm_connection: that is asked, where the
    engine is one; None once it was removed.
    """

    class Engine(models.TextChoices):
        EMBEDDED = "embedded", "Embedded: sentence embeddings, no language model"
        LLM = "llm", "Language model"

    project = models.ForeignKey(Project, models.CASCADE, related_name="inductions")
    campaign = models.ForeignKey(Campaign, models.CASCADE, null=True, blank=True, related_name="inductions")
    engine = models.CharField(max_length=10, choices=Engine, default=Engine.EMBEDDED)
    llm_connection = models.ForeignKey(
        LLMConnection, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    seed = models.PositiveIntegerField(default=0)
    before = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(state__in=["queued", "running"]),
                name="induction_one_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"induction {self.pk}"

    @property
    def by(self) -> str:
        """What it is done by, in words."""
        if self.engine == self.Engine.EMBEDDED:
            return self.Engine.EMBEDDED.label
        name = self.llm_connection.name if self.llm_connection else self.result.get("model", "")
        return f"{self.Engine.LLM.label} {name or '(removed)'}"


class Metric(models.Model):
    """A proposal, and what became of it.

    definition: as somebody wrote it; empty until then, and told by its examples. before: the metric of the last
    induction that this is. merged_into: where its points are now. criterion: what it was accepted as.
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
    before = models.ForeignKey("self", models.SET_NULL, null=True, related_name="after")
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
    """A point of a comment, tied to what the agent did. It goes with its comment and with its trajectory.

    step: a `step` index. example: 0 of the point that stands best for its side of the metric, then 1, ...
    x, y: where it is drawn.
    """

    induction = models.ForeignKey(Induction, models.CASCADE, related_name="aspects")
    metric = models.ForeignKey(Metric, models.SET_NULL, null=True, related_name="aspects")
    comment = models.ForeignKey(Comment, models.CASCADE, related_name="aspects")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="aspects")
    number = models.PositiveIntegerField()  # as the result calls it
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


class Verdict(models.Model):
    """A metric judged on a trajectory. sign: 1 kept, -1 violated, 0 does not apply.

    value: the chance of praise less the chance of blame, or the sign where a language model judged. because: the point
    it was judged by, or None. reason: in a language model's words.
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
