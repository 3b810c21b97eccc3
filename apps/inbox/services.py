"""Making notifications, reading them, and choosing which ones one gets.

A notification is a row of the transaction that it is about, once for each person and key. Mail follows it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import Membership, Project, Role, User
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.inbox.models import (
    LONGEST_DETAIL,
    LONGEST_TITLE,
    MailChoice,
    Notification,
    NotificationEvent,
    NotificationPreference,
)

MAIL = "apps.inbox.tasks.mail_notifications"
DAILY_AT = time(7)  # UTC
KEPT = timedelta(days=365)
KEPT_READ = timedelta(days=90)
_FORGET_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class NotificationChoice:
    is_listed: bool = True
    mail: str = MailChoice.OFF


@transaction.atomic
def notify_people(
    *,
    project: Project,
    users: Iterable[User],
    event: NotificationEvent,
    key: str,
    title: str,
    path: str,
    detail: str = "",
    least_role: Role = Role.ANNOTATOR,
) -> int:
    """Tell members of the project, by the channels they chose; how many were told now.

    key: of the event; the same key again tells no one twice. title: without text of trajectories, as it goes into mail.
    least_role: what the page needs; who has a lower one by then sees nothing of it.
    """
    members = Membership.objects.filter(project=project, user__in={user.pk for user in users})
    ids = list(members.filter(user__is_active=True).values_list("user", flat=True))
    wanted = _preferences_of(ids, event)
    now = timezone.now()
    rows = [
        Notification(
            project=project,
            user_id=pk,
            event=event,
            key=key,
            title=" ".join(title.split())[:LONGEST_TITLE],
            detail=detail[:LONGEST_DETAIL],
            path=path,
            least_role=least_role,
            is_listed=wanted[pk].is_listed,
            created_at=now,
            mail_next_at=_mail_time(wanted[pk].mail, now),
        )
        for pk in ids
        if wanted[pk].is_listed or wanted[pk].mail != MailChoice.OFF
    ]
    known = Notification.objects.filter(user__in=ids, key=key).count()
    Notification.objects.bulk_create(rows, ignore_conflicts=True)
    if any(row.mail_next_at is not None and row.mail_next_at <= now for row in rows):
        job_queue.nudge_on_commit(MAIL)
    return max(0, len(rows) - known)


def notify_role(
    *,
    project: Project,
    least_role: Role,
    event: NotificationEvent,
    key: str,
    title: str,
    path: str,
    detail: str = "",
) -> int:
    """`notify_people` for all members with at least this role."""
    roles = [role for role in Role if role.includes(least_role)]
    users = User.objects.filter(memberships__project=project, memberships__role__in=roles)
    return notify_people(
        project=project,
        users=users,
        event=event,
        key=key,
        title=title,
        path=path,
        detail=detail,
        least_role=least_role,
    )


def mark_read(*, user: User, notifications: QuerySet[Notification]) -> int:
    """Mark the person's own notifications as read; how many were not yet."""
    return notifications.filter(user=user, read_at=None).update(read_at=timezone.now())


def preferences(user: User) -> dict[str, NotificationChoice]:
    """What the person wants of each event."""
    stored = {row.event: row for row in NotificationPreference.objects.filter(user=user)}
    return {
        event: NotificationChoice(stored[event].is_listed, stored[event].mail)
        if event in stored
        else NotificationChoice()
        for event in NotificationEvent.values
    }


@transaction.atomic
def save_preferences(*, user: User, chosen: Mapping[str, NotificationChoice]) -> None:
    """Raises DomainError for mail where this installation sends none."""
    for event, value in chosen.items():
        if event not in NotificationEvent.values or value.mail not in MailChoice.values:
            raise DomainError(f"There is no notification {event!r} by {value.mail!r}.")
        if value.mail != MailChoice.OFF and not settings.MAIL:
            raise DomainError("This installation sends no mail: TOUCHSTONE_EMAIL_URL is not set.")
        NotificationPreference.objects.update_or_create(
            user=user, event=event, defaults={"is_listed": value.is_listed, "mail": value.mail}
        )


def forget_old_notifications() -> int:
    """For beat: delete read notifications after 90 days, all after a year; how many."""
    now = timezone.now()
    old = Notification.objects.filter(created_at__lt=now - KEPT_READ)
    gone = old.filter(read_at__isnull=False) | old.filter(created_at__lt=now - KEPT)
    ids = list(gone.values_list("pk", flat=True)[:_FORGET_BATCH])
    return Notification.objects.filter(pk__in=ids).delete()[0]


def _preferences_of(users: list[int], event: NotificationEvent) -> dict[int, NotificationChoice]:
    rows = NotificationPreference.objects.filter(user__in=users, event=event)
    stored = {row.user_id: NotificationChoice(row.is_listed, row.mail) for row in rows}
    return {pk: stored.get(pk, NotificationChoice()) for pk in users}


def _mail_time(mail: str, now: datetime) -> datetime | None:
    if mail == MailChoice.OFF or not settings.MAIL:
        return None
    if mail == MailChoice.IMMEDIATE:
        return now
    today = datetime.combine(now.date(), DAILY_AT, now.tzinfo)
    return today if now < today else today + timedelta(days=1)
