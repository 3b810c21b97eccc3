"""Notifications by mail: one mail for all that is due to a person, sent at least once, retried with growing waits.

A mail holds titles and links, never details. Membership is checked again when it is sent.
"""

import logging
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Membership, Role, User
from apps.core.jobs import job_queue, shutdown
from apps.inbox.models import Notification
from apps.inbox.services import MAIL

logger = logging.getLogger(__name__)

RETRY_MINUTES = (1, 5, 30, 120, 720)  # before the second attempt, the third, ...
MOST_MAILS = 50  # in one pass of a worker
MOST_LISTED = 50  # in one mail
_CLAIM = timedelta(minutes=2)


def send_due_mail() -> int:
    """Send what is due; how many mails were sent. An interrupted attempt is repeated."""
    sent = 0
    for _ in range(MOST_MAILS):
        if shutdown.is_asked() or not (rows := _claim_due()):
            break
        sent += _send(rows)
    return sent


def nudge_due_mail() -> None:
    """For beat: have a worker send what is due."""
    if Notification.objects.filter(mail_next_at__lte=timezone.now()).exists():
        job_queue.nudge(MAIL)


@transaction.atomic
def _claim_due() -> list[Notification]:
    """What is due to the person who waited longest."""
    now = timezone.now()
    due = Notification.objects.filter(mail_next_at__lte=now).order_by("mail_next_at", "pk")
    first = due.select_for_update(skip_locked=True).first()
    if first is None:
        return []
    rows = due.filter(user=first.user_id).select_for_update(skip_locked=True, of=("self",))
    claimed = list(rows.select_related("user", "project")[:MOST_LISTED])
    for row in claimed:
        row.mail_attempts += 1
        row.mail_next_at = now + _CLAIM
    Notification.objects.bulk_update(claimed, ["mail_attempts", "mail_next_at"])
    return claimed


def _send(rows: list[Notification]) -> bool:
    user = rows[0].user
    memberships = Membership.objects.filter(user=user, user__is_active=True)
    roles = {project: Role(role) for project, role in memberships.values_list("project", "role")}
    kept = []
    for row in rows:
        if row.project_id not in roles:  # they left while it waited
            row.mail_next_at, row.mail_error = None, "no longer a member"
        elif not roles[row.project_id].includes(Role(row.least_role)):
            row.mail_next_at, row.mail_error = None, f"no longer {row.least_role} or above"
        else:
            kept.append(row)
    error = ""
    if kept and user.email:
        try:
            _message(user, kept).send()
        except (SMTPException, OSError) as failure:
            error = f"{type(failure).__name__}: {failure}"[:300]
            logger.warning("notifications to person %d were not sent: %s", user.pk, error)
        for row in kept:
            _note_attempt(row, error)
    Notification.objects.bulk_update(rows, ["mail_next_at", "mail_sent_at", "mail_error"])
    return bool(kept) and not error


def _note_attempt(row: Notification, error: str) -> None:
    now = timezone.now()
    row.mail_error = error
    row.mail_next_at = None
    if not error:
        row.mail_sent_at = now
    elif row.mail_attempts <= len(RETRY_MINUTES):
        row.mail_next_at = now + timedelta(minutes=RETRY_MINUTES[row.mail_attempts - 1])


def _message(user: User, rows: list[Notification]) -> EmailMessage:
    subject = f"[{rows[0].project.slug}] {rows[0].title}" if len(rows) == 1 else f"{len(rows)} notifications"
    lines = [f"{row.project.name}: {row.title}\n{settings.PUBLIC_URL}{row.path}" for row in rows]
    choices = settings.PUBLIC_URL + reverse("inbox:preference-edit")
    lines.append(f"You chose to receive this by mail. Change it: {choices}")
    return EmailMessage(subject=subject, body="\n\n".join(lines) + "\n", to=[user.email])
