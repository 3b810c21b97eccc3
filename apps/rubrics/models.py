"""Versioned criteria, and rubrics that contain them."""

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from apps.accounts.models import Project, User

MOST_POINTS = 21  # of a scale
MOST_CATEGORIES = 40


class Criterion(models.Model):
    """A version in use never changes; editing creates the next version.

    A score goes from scale_low to scale_high, in steps of one. The other types of answers are names of categories.
    """

    class AnswerType(models.TextChoices):
        SCALE = "scale", "A score on a scale"
        CATEGORY = "category", "One category"
        CATEGORIES = "categories", "Several categories"
        STEP_TAGS = "step_tags", "Tags on agent steps"

    class Origin(models.TextChoices):
        HUMAN = "human"
        INDUCED = "induced"
        IMPORTED = "imported"
        POLICY = "policy"

    project = models.ForeignKey(Project, models.CASCADE, related_name="criteria")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1)
    definition = models.TextField(blank=True)
    scale_low = models.FloatField(default=1)
    scale_high = models.FloatField(default=5)
    answer_type = models.CharField(max_length=10, choices=AnswerType, default=AnswerType.SCALE)
    categories = models.JSONField(default=list, blank=True)  # [{"name", "definition"}]; empty for a scale
    point_names = models.JSONField(default=dict, blank=True)  # by score as in `points`: {"1": "Never asks"}
    good_example = models.TextField(blank=True)
    bad_example = models.TextField(blank=True)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.HUMAN)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "criteria"
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="criterion_version_once"),
            models.CheckConstraint(condition=Q(scale_low__lt=F("scale_high")), name="criterion_scale"),
            models.CheckConstraint(
                condition=Q(answer_type="scale", categories=[])
                | (~Q(answer_type="scale") & ~Q(categories=[])),
                name="criterion_categories",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_scale(self) -> bool:
        return self.answer_type == self.AnswerType.SCALE

    @property
    def category_names(self) -> list[str]:
        return [category["name"] for category in self.categories]

    @property
    def points(self) -> list[str]:
        """Possible scores as form values: in steps of one from the lowest to the highest."""
        return scale_points(self.scale_low, self.scale_high)

    @property
    def named_points(self) -> list[tuple[str, str]]:
        """(score, name) of the scores that have a name, lowest first."""
        return [(point, self.point_names[point]) for point in self.points if point in self.point_names]


def scale_points(low: float, high: float) -> list[str]:
    return [f"{low + number:g}" for number in range(int(high - low) + 1)]


class Rubric(models.Model):
    """A named list of criteria, each with a weight and a rank. A version in use never changes."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="rubrics")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1)
    about = models.TextField(blank=True)
    criteria = models.ManyToManyField(Criterion, through="RubricCriterion", related_name="rubrics")
    # The ranking of factors that comparisons are made of, see `apps.rubrics.factors`; null: by rank and weight.
    factors = models.JSONField(null=True, default=None, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="rubric_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class RubricCriterion(models.Model):
    """position: the order on the page. rank: 1 is the most important; ranks can be equal. weight: of a weighted sum."""

    rubric = models.ForeignKey(Rubric, models.CASCADE, related_name="entries")
    criterion = models.ForeignKey(Criterion, models.PROTECT, related_name="entries")
    position = models.PositiveSmallIntegerField()
    rank = models.PositiveSmallIntegerField(default=1)
    weight = models.FloatField(default=1)

    class Meta:
        ordering = ["rubric", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rubric", "criterion"], name="rubric_criterion_once"),
            models.UniqueConstraint(fields=["rubric", "position"], name="rubric_position_once"),
            models.CheckConstraint(condition=Q(rank__gte=1), name="rubric_rank"),
        ]

    def __str__(self) -> str:
        return f"{self.criterion} of {self.rubric}"
