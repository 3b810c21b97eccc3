"""Bulk jobs: one piece of work on each of many stored trajectories, in chunks that workers claim."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.judges.models import Judge
from apps.metrics.models import Induction
from apps.rewards.models import EndpointRevision
from apps.training.models import RewardModel
from apps.trajectories.models import Trajectory


class BulkJob(models.Model):
    """The trajectories are chosen when it is created: its chunks name them, and later imports do not change it.

    model: of the works SCORE and EMBED. judge: of JUDGE. induction: of INDUCE, whose active metrics judge. revision: of
    ENDPOINT, the active one when the job was created. INDEX has none of these, and writes passages instead of results.
    query: what the trajectories were chosen by, as `TrajectoryFilter.query`. served_at: when a worker last began on
    it, so that jobs take turns.
    """

    class Work(models.TextChoices):
        SCORE = "score", "Score by a reward model"
        EMBED = "embed", "Embed by a reward model"
        JUDGE = "judge", "Score by a judge"
        INDUCE = "induce", "Judge by induced metrics"
        ENDPOINT = "endpoint", "Score with an endpoint"
        INDEX = "index", "Index for semantic search"

    class State(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"

    project = models.ForeignKey(Project, models.CASCADE, related_name="bulk_jobs")
    number = ProjectNumberField()
    work = models.CharField(max_length=10, choices=Work)
    model = models.ForeignKey(RewardModel, models.PROTECT, null=True, related_name="bulk_jobs")
    judge = models.ForeignKey(Judge, models.CASCADE, null=True, related_name="bulk_jobs")
    induction = models.ForeignKey(Induction, models.CASCADE, null=True, related_name="bulk_jobs")
    revision = models.ForeignKey(EndpointRevision, models.CASCADE, null=True, related_name="bulk_jobs")
    with_steps = models.BooleanField(default=False)
    query = models.TextField(blank=True)
    item_count = models.PositiveIntegerField(default=0)
    token_estimate = models.PositiveBigIntegerField(default=0)  # of Trajectory.token_count
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    error = models.TextField(default="")  # shown to the user
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)
    served_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # It may go on, and needs the files of its model. Results are kept without them, with the model's name.
    OPEN = (State.RUNNING, State.PAUSED, State.FAILED)
    holds_model = Q(state__in=OPEN)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="bulk_job_number"),
            models.CheckConstraint(
                condition=Q(work="judge", judge__isnull=False, model=None, induction=None, revision=None)
                | Q(work="induce", induction__isnull=False, model=None, judge=None, revision=None)
                | Q(work="endpoint", revision__isnull=False, model=None, judge=None, induction=None)
                | Q(work="index", revision=None, model=None, judge=None, induction=None)
                | Q(
                    work__in=["score", "embed"],
                    model__isnull=False,
                    judge=None,
                    induction=None,
                    revision=None,
                ),
                name="bulk_job_has_its_engine",
            ),
        ]

    def __str__(self) -> str:
        return f"bulk job {self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.state in (self.State.SUCCEEDED, self.State.FAILED, self.State.CANCELLED)

    @property
    def engine(self) -> str:
        """The name of the model, the judge, the induction or the endpoint's revision; of the work INDEX the encoder."""
        engine = self.model or self.judge or self.induction or self.revision
        return "the embedded encoder" if engine is None else str(engine)


class BulkChunk(Job):
    """Some of a bulk job's trajectories, claimed by a worker as a whole.

    Its results are written in the transaction that ends it. missing: trajectories deleted meanwhile. problems: items
    whose result is a problem. tokens: that the engine read. seconds: between the result before it and its own.
    """

    bulk_job = models.ForeignKey(BulkJob, models.CASCADE, related_name="chunks")
    trajectory_ids = ArrayField(models.BigIntegerField())
    item_count = models.PositiveIntegerField()
    token_estimate = models.PositiveBigIntegerField(default=0)
    missing = models.PositiveIntegerField(default=0)
    problems = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)

    class Meta:
        indexes = [models.Index(fields=["bulk_job", "state"], name="bulk_chunk_state")]

    def __str__(self) -> str:
        return f"chunk {self.pk} of bulk job {self.bulk_job_id}"


class BulkResult(models.Model):
    """What a bulk job found of a trajectory; deleted with it. problem: why there is nothing else.

    reward: the model's own, the endpoint's final one, or the judge's mean over its criteria, 0 to 1. std: over the
    model's ensemble. steps: rewards of agent steps. answer: the judge's, by criterion, as `JudgeResult.answer`; or
    {metric, sign, value, step} of each induced metric.
    """

    bulk_job = models.ForeignKey(BulkJob, models.CASCADE, related_name="results")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="bulk_results")
    reward = models.FloatField(null=True)
    std = models.FloatField(null=True)
    tokens = models.PositiveIntegerField(default=0)
    truncated = models.BooleanField(default=False)
    steps = ArrayField(models.FloatField(), null=True)
    embedding = ArrayField(models.FloatField(), null=True)
    answer = models.JSONField(null=True)
    problem = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bulk_job", "trajectory"], name="bulk_result_once"),
            models.CheckConstraint(
                condition=~Q(problem="")
                | Q(reward__isnull=False)
                | Q(embedding__isnull=False)
                | Q(answer__isnull=False),
                name="bulk_result_has_something",
            ),
        ]
        indexes = [
            models.Index(
                fields=["bulk_job", "trajectory"], condition=~Q(problem=""), name="bulk_result_problem"
            )
        ]

    def __str__(self) -> str:
        return f"{self.trajectory_id} of bulk job {self.bulk_job_id}"
