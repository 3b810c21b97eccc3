"""Telling members that a comment mentions them (`apps.accounts.mentions` finds whom)."""

from apps.accounts.mentions import mentioned_users
from apps.accounts.models import Membership, Project, Role, User
from apps.inbox.models import NotificationEvent
from apps.inbox.services import notify_people

MOST_MENTIONED = 50


def notify_mentioned(
    *,
    project: Project,
    text: str,
    by: User | None,
    key: str,
    where: str,
    path: str,
    least_role: Role = Role.ANNOTATOR,
) -> int:
    """Tell the members who are mentioned in a comment, each once for a key; how many.

    by: None is a service account. where: such as "a comment on trajectory 12". least_role: what the page needs.
    """
    roles = [role for role in Role if role.includes(least_role)]
    members = Membership.objects.filter(project=project, role__in=roles)
    users = [user for user in mentioned_users(project, text) if by is None or user.pk != by.pk]
    allowed = set(members.filter(user__in=users).values_list("user", flat=True))
    told = [user for user in users if user.pk in allowed][:MOST_MENTIONED]
    if not told:
        return 0
    return notify_people(
        project=project,
        users=told,
        event=NotificationEvent.COMMENT_MENTION,
        key=f"mention:{key}",
        title=f"{by or 'A program'} mentioned you in {where}",
        path=path,
        least_role=least_role,
    )
