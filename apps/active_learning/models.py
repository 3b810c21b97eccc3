"""What to annotate next: the plan of a campaign, each ranking, and the reason of each item."""

from django.db import models
from django.db.models import Q

from apps.annotation.models import Campaign, Item
from apps.core.jobs.job_queue import Job
from apps.rewards.models import Endpoint


class Strategy(models.TextChoices):
    MIX = "mix", "Mix: informative, diverse and representative"
    INFORMATION_GAIN = "information_gain", "Expected information gain"
    UNCERTAINTY = "uncertainty", "Model uncertainty"
    DIVERSITY = "diversity", "Diversity (k-center)"
    REPRESENTATIVENESS = "representativeness", "Representativeness of the endpoint's traffic"
    RANDOM = "random", "Random"


class SelectionPlan(models.Model):
    """How a campaign selects items. It is made when a campaign's order is `active`, and does nothing under another one.

    endpoint: whose served model ranks the items, and whose samples stand for real traffic; without it, the project's
    newest model. annotations_between: annotations after which items are ranked again. target_accuracy: of the learning
    curve, between 0.5 and 1.
    """

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="selection_plan")
    strategy = models.CharField(max_length=20, choices=Strategy, default=Strategy.MIX)
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True, blank=True, related_name="+")
    annotations_between = models.PositiveSmallIntegerField(default=10)
    target_accuracy = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(annotations_between__gte=1), name="plan_annotations_between"),
            models.CheckConstraint(
                condition=Q(target_accuracy=None) | Q(target_accuracy__gt=0.5, target_accuracy__lt=1),
                name="plan_target_accuracy",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_strategy_display()} in {self.campaign}"


class ItemSelection(Job):
    """One ranking of a campaign's items. basis: the model, its number or `encoder`; basis_label: the same for people.

    artifact: the features of its trajectories, for the next one. result: of `workers.active_learning`.
    """

    plan = models.ForeignKey(SelectionPlan, models.CASCADE, related_name="selections")
    basis = models.CharField(max_length=40, blank=True)
    basis_label = models.CharField(max_length=255, blank=True)
    artifact = models.CharField(max_length=255, blank=True)
    result = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan"], condition=Q(state__in=["queued", "running"]), name="selection_one_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"selection {self.pk} for campaign {self.plan.campaign_id}"


class SelectionReason(models.Model):
    """Why an item was selected. rank: 0 is the first. measures: {name: the share it is at least as good as}."""

    item = models.OneToOneField(Item, models.CASCADE, primary_key=True, related_name="reason")
    selection = models.ForeignKey(ItemSelection, models.CASCADE, related_name="reasons")
    strategy = models.CharField(max_length=20, choices=Strategy)
    rank = models.PositiveIntegerField()
    measures = models.JSONField()

    def __str__(self) -> str:
        return f"{self.rank} of {self.selection_id}"
