"""What to label next: how a campaign chooses, each choosing, and why each item was chosen."""

from django.db import models
from django.db.models import Q

from apps.annotation.models import Campaign, Item
from apps.core.jobs.job_queue import Job
from apps.rewards.models import Endpoint


class Strategy(models.TextChoices):
    MIX = "mix", "A mix: what teaches most, is new, and is like what is asked"
    INFORMATION_GAIN = "information_gain", "What an answer would teach most (expected information gain)"
    UNCERTAINTY = "uncertainty", "What the model is least sure of"
    DIVERSITY = "diversity", "What is least like anything judged (k-center)"
    REPRESENTATIVENESS = "representativeness", "What is most like the endpoint's traffic"
    RANDOM = "random", "At random"


class SelectionPlan(models.Model):
    """How a campaign chooses. It is made when a campaign's order is `active`, and does nothing under another one.

    endpoint: whose served model is looked through, and whose samples stand for what is really asked; without it, the
    project's newest model. every: judgements after which it is chosen again. wanted: the accuracy to be reached.
    """

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="selection_plan")
    strategy = models.CharField(max_length=20, choices=Strategy, default=Strategy.MIX)
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True, blank=True, related_name="+")
    every = models.PositiveSmallIntegerField(default=10)
    wanted = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(every__gte=1), name="plan_every"),
            models.CheckConstraint(
                condition=Q(wanted=None) | Q(wanted__gt=0.5, wanted__lt=1), name="plan_wanted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_strategy_display()} in {self.campaign}"


class ItemSelection(Job):
    """One choosing. basis: what was looked through, a model's number or `encoder`; `through`: the same for people.

    artifact: the features of its trajectories, for the next one. result: of `workers.active_learning`.
    """

    plan = models.ForeignKey(SelectionPlan, models.CASCADE, related_name="selections")
    basis = models.CharField(max_length=40, blank=True)
    through = models.CharField(max_length=255, blank=True)
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
    """Why an item is asked about. rank: 0 is the first. measures: {name: the share it is at least as good as}."""

    item = models.OneToOneField(Item, models.CASCADE, primary_key=True, related_name="reason")
    selection = models.ForeignKey(ItemSelection, models.CASCADE, related_name="reasons")
    strategy = models.CharField(max_length=20, choices=Strategy)
    rank = models.PositiveIntegerField()
    measures = models.JSONField()

    def __str__(self) -> str:
        return f"{self.rank} of {self.selection_id}"
