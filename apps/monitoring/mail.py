"""Telling people of alerts by mail: at least once, with growing waits. Nobody is told of a project they have left."""

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
from apps.monitoring.models import Alert, Letter, Monitor
from apps.rewards.models import Endpoint

logger = logging.getLogger(__name__)

WAITS = (1, 5, 30, 120, 720)  # minutes before the second attempt, the third, ...
AT_ONCE = 20  # letters in one pass
_CLAIM = timedelta(minutes=2)


@transaction.atomic
def tell_by_mail(*, endpoint: Endpoint, user: User, wanted: bool) -> None:
    """Whether this person is told. Raises DomainError where this installation sends no mail."""
    if wanted and not settings.MAIL:
        raise DomainError("This installation sends no mail: TOUCHSTONE_EMAIL_URL is not set.")
    monitor, _ = Monitor.objects.get_or_create(endpoint=endpoint)
    (monitor.told.add if wanted else monitor.told.remove)(user)


def write_letters(alert: Alert) -> None:
    """To all who asked for it, may still see it, and have an address."""
    if not settings.MAIL:
        return
    asked = User.objects.filter(monitors__endpoint=alert.endpoint)
    told = [user for user in asked if _may_read(user, alert.endpoint)]
    Letter.objects.bulk_create(Letter(alert=alert, user=user) for user in told if user.email)


def _may_read(user: User, endpoint: Endpoint) -> bool:
    role = role_in(endpoint.project, user)
    return role is not None and role.includes(Role.RESEARCHER)


def send_due() -> int:
    """Send what waits; how much was. An attempt that dies is followed by another."""
    sent = 0
    for _ in range(AT_ONCE):
        letter = _claim()
        if letter is None:
            break
        sent += _send(letter)
    return sent


@transaction.atomic
def _claim() -> Letter | None:
    now = timezone.now()
    rows = Letter.objects.select_for_update(of=("self",), skip_locked=True)
    letter = (
        rows.select_related("alert__endpoint__project", "user")
        .filter(next_at__lte=now)
        .order_by("next_at", "pk")
        .first()
    )
    if letter is not None:
        letter.attempts += 1
        letter.next_at = now + _CLAIM
        letter.save(update_fields=["attempts", "next_at"])
    return letter


def _send(letter: Letter) -> bool:
    alert = letter.alert
    endpoint = alert.endpoint
    if not _may_read(letter.user, endpoint):  # they left while it waited
        letter.delete()
        return False
    path = reverse("monitoring:alert-detail", args=[endpoint.project.slug, alert.pk])
    message = EmailMessage(
        subject=f"[{endpoint.project.slug}] {endpoint.name}: {' '.join(alert.rule.split())}",
        body=f"{alert.detail}\n\n{settings.PUBLIC_URL}{path}\n",
        to=[letter.user.email],
    )
    try:
        message.send()
    except (SMTPException, OSError) as error:
        waits = letter.attempts <= len(WAITS)
        letter.error = f"{type(error).__name__}: {error}"[:1000]
        letter.next_at = timezone.now() + timedelta(minutes=WAITS[letter.attempts - 1]) if waits else None
        logger.warning("%s was not sent: %s", letter, letter.error)
    else:
        letter.error, letter.next_at, letter.sent_at = "", None, timezone.now()
    letter.save(update_fields=["error", "next_at", "sent_at"])
    return letter.sent_at is not None
