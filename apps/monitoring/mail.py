"""Alerts by email: sent at least once, retried with growing delays, and never to people who left the project."""

import logging
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Role, User
from apps.accounts.selectors import role_in
from apps.core.errors import DomainError
from apps.monitoring.models import Alert, AlertEmail, Monitor
from apps.rewards.models import Endpoint

logger = logging.getLogger(__name__)

RETRY_MINUTES = (1, 5, 30, 120, 720)  # before the second attempt, the third, ...
MAX_PER_PASS = 20
_CLAIM = timedelta(minutes=2)


@transaction.atomic
def set_alert_emails(*, endpoint: Endpoint, user: User, wanted: bool) -> None:
    """Whether this user gets an email for every alert. Raises DomainError where this installation sends no email."""
    if wanted and not settings.MAIL:
        raise DomainError("This installation sends no email: TOUCHSTONE_EMAIL_URL is not set.")
    monitor, _ = Monitor.objects.get_or_create(endpoint=endpoint)
    (monitor.email_recipients.add if wanted else monitor.email_recipients.remove)(user)


def create_alert_emails(alert: Alert) -> None:
    """For all recipients who may still see the alert and have an address."""
    if not settings.MAIL:
        return
    recipients = User.objects.filter(monitors__endpoint=alert.endpoint).exclude(email="")
    AlertEmail.objects.bulk_create(
        AlertEmail(alert=alert, user=user) for user in recipients if _may_read(user, alert.endpoint)
    )


def _may_read(user: User, endpoint: Endpoint) -> bool:
    role = role_in(endpoint.project, user)
    return role is not None and role.includes(Role.RESEARCHER)


def send_due_emails() -> int:
    """Send the emails that are due; how many were sent. An interrupted attempt is repeated."""
    sent = 0
    for _ in range(MAX_PER_PASS):
        email = _claim()
        if email is None:
            break
        sent += _send(email)
    return sent


@transaction.atomic
def _claim() -> AlertEmail | None:
    now = timezone.now()
    rows = AlertEmail.objects.select_for_update(of=("self",), skip_locked=True)
    email = (
        rows.select_related("alert__endpoint__project", "user")
        .filter(next_at__lte=now)
        .order_by("next_at", "pk")
        .first()
    )
    if email is not None:
        email.attempts += 1
        email.next_at = now + _CLAIM
        email.save(update_fields=["attempts", "next_at"])
    return email


def _send(email: AlertEmail) -> bool:
    alert = email.alert
    endpoint = alert.endpoint
    if not _may_read(email.user, endpoint):  # they left while it waited
        email.delete()
        return False
    path = reverse("monitoring:alert-detail", args=[endpoint.project.slug, alert.pk])
    message = EmailMessage(
        subject=f"[{endpoint.project.slug}] {endpoint.name}: {' '.join(alert.rule.split())}",
        body=f"{alert.detail}\n\n{settings.PUBLIC_URL}{path}\n",
        to=[email.user.email],
    )
    try:
        message.send()
    except (SMTPException, OSError) as error:
        is_retried = email.attempts <= len(RETRY_MINUTES)
        email.error = f"{type(error).__name__}: {error}"[:1000]
        email.next_at = (
            timezone.now() + timedelta(minutes=RETRY_MINUTES[email.attempts - 1]) if is_retried else None
        )
        logger.warning("%s was not sent: %s", email, email.error)
    else:
        email.error, email.next_at, email.sent_at = "", None, timezone.now()
    email.save(update_fields=["error", "next_at", "sent_at"])
    return email.sent_at is not None
