"""Recipes, training runs, and the registry of models."""

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job
from apps.datasets.models import DatasetVersion
from apps.training.report import Measure, measures

OWN = "own"  # stored as the name of a recipe that has none


class Recipe(models.Model):
    """A named recipe of a project; built-in recipes are files."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="recipes")
    name = models.SlugField(max_length=60)
    toml = models.TextField()
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="recipe_name_once")]

    def __str__(self) -> str:
        return self.name


class TrainingRun(Job):
    project = models.ForeignKey(Project, models.CASCADE, related_name="runs")
    dataset_version = models.ForeignKey(DatasetVersion, models.PROTECT, related_name="runs")
    recipe_name = models.CharField(max_length=60)
    recipe = models.JSONField()  # the validated recipe with all defaults
    parent = models.ForeignKey(  # the model to fine-tune
        "RewardModel", models.SET_NULL, null=True, related_name="continued_by"
    )
    seed = models.BigIntegerField(default=0)
    model_name = models.SlugField(max_length=60)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True)
    report = models.JSONField(null=True)
    log_tail = models.TextField(default="")  # the end of the output of the child process
    tracker_options = models.JSONField(default=dict)  # TrackerOptions; {} where the run is not tracked
    tracker_states = models.JSONField(default=dict)  # by tracker {"id", "url", "problem"}

    class Meta:
        db_table = "training_run"

    def __str__(self) -> str:
        return f"run {self.pk} of {self.recipe_name}"

    @property
    def recipe_title(self) -> str:
        """For pages."""
        return "custom recipe" if self.recipe_name == OWN else self.recipe_name

    @property
    def measure(self) -> Measure | None:
        """The measure that its summary is about."""
        return next(iter(measures(self.report)), None)


class TrainingRunEvent(models.Model):
    """One logged line of the child: {"step", "loss", "validation": {...}, ...}. seq: its line number in the file."""

    training_run = models.ForeignKey(TrainingRun, models.CASCADE, related_name="events")
    attempt = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    data = models.JSONField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "training_run_event"
        ordering = ["training_run", "seq"]
        constraints = [models.UniqueConstraint(fields=["training_run", "seq"], name="event_once")]

    def __str__(self) -> str:
        return f"event {self.seq} of run {self.training_run_id}"


class RewardModel(models.Model):
    """`project/name@version`, an artifact folder in the artifact store.

    A deleted model has no artifact; its row is kept, so that its version is not used again.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="models")
    name = models.SlugField(max_length=60)
    version = models.PositiveIntegerField()
    training_run = models.OneToOneField(TrainingRun, models.PROTECT, null=True, related_name="model")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="children")
    artifact = models.CharField(max_length=255)
    manifest = models.JSONField()  # touchstone.json of the artifact
    tags = models.JSONField(default=list)  # sorted
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="model_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug}/{self.name}@{self.version}"


class Evaluation(models.Model):
    """A model's report on a dataset version's test split, or on a file."""

    model = models.ForeignKey(RewardModel, models.CASCADE, related_name="evaluations")
    dataset_version = models.ForeignKey(DatasetVersion, models.PROTECT, null=True, related_name="evaluations")
    source = models.CharField(max_length=255)
    report = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.model} on {self.source}"

    @property
    def measure(self) -> Measure | None:
        """The measure that its summary is about."""
        return next(iter(measures(self.report)), None)
