"""Reads of notifications. Those of projects that the person left, or has too low a role in, are never shown."""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from apps.accounts.models import Role, User
from apps.inbox.models import Notification

MOST_COUNTED = 100  # of the unread, in the bar


def own_notifications(
    user: User,
    *,
    unmet_rules: Collection[str] = (),
    project: str = "",
    event: str = "",
    only_unread: bool = False,
) -> QuerySet[Notification]:
    """Newest first, with their project. unmet_rules: sign-in rules of projects that the session does not meet."""
    allowed = Q(pk__in=[])
    for least in Role:
        roles = [role for role in Role if role.includes(least)]
        allowed |= Q(least_role=least, project__memberships__role__in=roles)
    rows = Notification.objects.filter(
        allowed,
        user=user,
        is_listed=True,
        project__memberships__user=user,
        **{f"project__{rule}": False for rule in unmet_rules},
    )
    if project:
        rows = rows.filter(project__slug=project)
    if event:
        rows = rows.filter(event=event)
    if only_unread:
        rows = rows.filter(read_at=None)
    return rows.select_related("project").order_by("-pk")


def unread_count(user: User, *, unmet_rules: Collection[str] = ()) -> int:
    """At most `MOST_COUNTED`."""
    # Every page asks. Most people have none, which an index of the unread tells without a look at memberships.
    if not Notification.objects.filter(user=user, is_listed=True, read_at=None).exists():
        return 0
    rows = own_notifications(user, unmet_rules=unmet_rules, only_unread=True)
    return rows.order_by().values("pk")[:MOST_COUNTED].count()
