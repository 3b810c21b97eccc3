"""Campaigns put items before annotators; submissions are what they said. Nothing said is ever overwritten."""

import secrets
import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.rubrics.models import Criterion
from apps.trajectories.models import Task, Trajectory


class Origin(models.TextChoices):
    PERSON = "person"
    JUDGE = "judge"
    SIMULATED = "simulated"
    IMPORTED = "imported"


def random_key() -> int:
    return secrets.randbits(62)


class Annotator(models.Model):
    """Whoever judges: a user of this installation, or a name that came with imported feedback."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="annotators")
    user = models.ForeignKey(User, models.PROTECT, null=True, related_name="annotators")
    name = models.CharField(max_length=254)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="annotator_user_once"),
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(user=None), name="annotator_name_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Campaign(models.Model):
    class State(models.TextChoices):
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    class Ordering(models.TextChoices):
        RANDOM = "random"
        PRIORITY = "priority"

    project = models.ForeignKey(Project, models.CASCADE, related_name="campaigns")
    name = models.CharField(max_length=200)
    kinds = ArrayField(
        models.CharField(max_length=10)
    )  # of workers.schema.Kind; modules in annotation/kinds/
    guidelines = models.TextField(blank=True)
    overlap = models.PositiveSmallIntegerField(default=1)  # how many annotators judge each item
    ordering = models.CharField(max_length=10, choices=Ordering, default=Ordering.RANDOM)
    swap_sides = models.BooleanField(default=True)
    blind_agents = models.BooleanField(default=True)
    show_outcome = models.BooleanField(default=False)
    lease_minutes = models.PositiveSmallIntegerField(default=30)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    version = models.PositiveIntegerField(default=1)  # grows when what annotators see changes
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="campaign_name_once"),
            models.CheckConstraint(condition=Q(overlap__gte=1), name="campaign_overlap"),
        ]

    def __str__(self) -> str:
        return self.name


class Item(models.Model):
    """What is judged together: one to N trajectories. `taken` counts live leases and submissions, kept by services."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="items")
    task = models.ForeignKey(Task, models.CASCADE, related_name="items")
    key = models.CharField(max_length=200)  # names the comparison: given, or made from task and contents
    priority = models.FloatField(default=0)
    random_key = models.BigIntegerField(default=random_key)
    wanted = models.PositiveSmallIntegerField()  # the campaign's overlap when the item was made
    taken = models.PositiveSmallIntegerField(default=0)
    done = models.PositiveSmallIntegerField(default=0)  # assignments submitted
    trajectories = models.ManyToManyField(Trajectory, through="ItemTrajectory", related_name="items")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "key"], name="item_key_once"),
            models.CheckConstraint(condition=Q(done__lte=F("taken")), name="item_done_within_taken"),
        ]
        indexes = [
            models.Index(
                fields=["campaign", "taken", "random_key"],
                condition=Q(taken__lt=F("wanted")),
                name="item_random",
            ),
            models.Index(
                fields=["campaign", "-priority", "taken", "random_key"],
                condition=Q(taken__lt=F("wanted")),
                name="item_priority",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of {self.campaign_id}"


class ItemTrajectory(models.Model):
    """position: 0 is `a`, 1 is `b`, before any side swap."""

    item = models.ForeignKey(Item, models.CASCADE, related_name="places")
    trajectory = models.ForeignKey(Trajectory, models.PROTECT, related_name="places")
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["item", "position"]
        constraints = [
            models.UniqueConstraint(fields=["item", "position"], name="place_once"),
            models.UniqueConstraint(fields=["item", "trajectory"], name="place_never_with_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}[{self.position}]"


class Assignment(models.Model):
    """One person's hold on one item. The same person never gets the same item twice."""

    class State(models.TextChoices):
        LEASED = "leased"
        SUBMITTED = "submitted"
        SKIPPED = "skipped"
        FLAGGED = "flagged"
        EXPIRED = "expired"

    item = models.ForeignKey(Item, models.CASCADE, related_name="assignments")
    annotator = models.ForeignKey(Annotator, models.CASCADE, related_name="assignments")
    state = models.CharField(max_length=10, choices=State, default=State.LEASED)
    leased_until = models.DateTimeField(null=True)
    swapped = models.BooleanField(default=False)  # the stored coin: whether `b` was shown on the left
    draft = models.JSONField(default=dict)
    draft_saved_at = models.DateTimeField(null=True)
    active_seconds = models.FloatField(default=0)
    reason = models.TextField(blank=True)  # of a skip or a flag
    finished_at = models.DateTimeField(null=True)  # when it was last submitted, skipped or flagged
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "annotator"], name="assignment_once"),
            models.UniqueConstraint(
                fields=["annotator"], condition=Q(state="leased"), name="assignment_one_lease"
            ),
            models.CheckConstraint(
                condition=~Q(state="leased") | Q(leased_until__isnull=False), name="assignment_lease_has_end"
            ),
        ]
        indexes = [
            models.Index(fields=["leased_until"], condition=Q(state="leased"), name="assignment_leases")
        ]

    def __str__(self) -> str:
        return f"{self.item} with {self.annotator}"

    @property
    def is_late(self) -> bool:
        """Whether the lease is over and the item may have gone to somebody else."""
        return self.state == self.State.EXPIRED


class Submission(models.Model):
    """Append-only: an edit is a new revision that holds everything said; the highest revision is what counts."""

    assignment = models.ForeignKey(Assignment, models.CASCADE, related_name="submissions")
    revision = models.PositiveIntegerField(default=1)
    idempotency_key = models.UUIDField(default=uuid.uuid4, unique=True)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.PERSON)
    campaign_version = models.PositiveIntegerField(default=1)
    active_seconds = models.FloatField(null=True)
    aside = models.BooleanField(default=False)  # came after the lease ended and the item wanted no more
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="submission_revision_once")
        ]

    def __str__(self) -> str:
        return f"revision {self.revision} of {self.assignment_id}"


class Preference(models.Model):
    """choice is by stored position (a = position 0), whatever side it was shown on."""

    submission = models.ForeignKey(Submission, models.CASCADE, related_name="preferences")
    choice = models.CharField(max_length=8, choices=[(c, c) for c in ("a", "b", "tie", "both_bad")])
    strength = models.PositiveSmallIntegerField(default=1)
    criterion = models.ForeignKey(Criterion, models.PROTECT, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "criterion"], nulls_distinct=False, name="preference_once"
            ),
            models.CheckConstraint(
                condition=Q(choice__in=["a", "b", "tie", "both_bad"]), name="preference_choice"
            ),
            models.CheckConstraint(condition=Q(strength__gte=1, strength__lte=3), name="preference_strength"),
        ]

    def __str__(self) -> str:
        return self.choice


class Comment(models.Model):
    """Free text on a trajectory or on a part of it. first_step, last_step: `step` indices, inclusive."""

    submission = models.ForeignKey(Submission, models.CASCADE, related_name="comments")
    trajectory = models.ForeignKey(Trajectory, models.PROTECT, related_name="comments")
    text = models.TextField()
    first_step = models.PositiveIntegerField(null=True)
    last_step = models.PositiveIntegerField(null=True)
    quote = models.TextField(blank=True)
    first_char = models.PositiveIntegerField(null=True)
    last_char = models.PositiveIntegerField(null=True)
    sign = models.SmallIntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="comment_says_something"),
            models.CheckConstraint(condition=Q(sign=None) | Q(sign__in=[-1, 1]), name="comment_sign"),
            models.CheckConstraint(
                condition=Q(first_step=None, last_step=None) | Q(first_step__lte=F("last_step")),
                name="comment_anchor",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]
