"""Notifications of people, and which of them each person wants on the page and by mail."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import Project, Role, User

LONGEST_TITLE = 200
LONGEST_DETAIL = 1000


class NotificationEvent(models.TextChoices):
    JOB_SUCCEEDED = "job.succeeded", "A job that I started finished"
    JOB_FAILED = "job.failed", "A job that I started failed"
    ITEMS_ASSIGNED = "items.assigned", "Items were assigned to me"
    COMMENT_MENTION = "comment.mention", "Someone mentioned me in a comment"
    ALERT_RAISED = "alert.raised", "An alert was raised in a project of mine"


class MailChoice(models.TextChoices):
    OFF = "off", "no mail"
    IMMEDIATE = "immediate", "immediately"
    DAILY = "daily", "once a day"


class Notification(models.Model):
    """Something that a member should know. Its title and link go into mail, its detail only onto the page.

    key: the same event makes one notification of a person, however often it is reported. is_listed: whether the person
    wanted it on the page when it was made. least_role: what its page needs. mail_next_at: when the next attempt to mail
    it is due.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="notifications")
    user = models.ForeignKey(User, models.CASCADE, related_name="notifications")
    event = models.CharField(max_length=20, choices=NotificationEvent)
    key = models.CharField(max_length=200)
    title = models.CharField(max_length=LONGEST_TITLE)
    detail = models.CharField(max_length=LONGEST_DETAIL, blank=True)
    path = models.CharField(max_length=500)
    least_role = models.CharField(max_length=20, choices=Role, default=Role.ANNOTATOR)
    is_listed = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True)
    mail_next_at = models.DateTimeField(null=True)
    mail_attempts = models.PositiveSmallIntegerField(default=0)
    mail_sent_at = models.DateTimeField(null=True)
    mail_error = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="notification_once")]
        indexes = [
            models.Index(fields=["user", "-id"], condition=Q(is_listed=True), name="notification_newest"),
            models.Index(
                fields=["user"], condition=Q(read_at=None, is_listed=True), name="notification_unread"
            ),
            models.Index(
                fields=["mail_next_at"], condition=Q(mail_next_at__isnull=False), name="notification_mail"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class NotificationPreference(models.Model):
    """What a person wants to hear of an event; without a row, the page and no mail."""

    user = models.ForeignKey(User, models.CASCADE, related_name="notification_preferences")
    event = models.CharField(max_length=20, choices=NotificationEvent)
    is_listed = models.BooleanField(default=True)
    mail = models.CharField(max_length=10, choices=MailChoice, default=MailChoice.OFF)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "event"], name="notification_preference_once")]

    def __str__(self) -> str:
        return f"{self.event} for {self.user_id}"
