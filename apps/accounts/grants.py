"""What a person gave out, and what ends with the right to give it: links into the project and to members' passwords."""

from django.utils import timezone

from apps.accounts.actors import Actor
from apps.accounts.audit_trail import record_audit
from apps.accounts.models import AccountLink, AuditEvent, Invitation, Membership, Project, Role, User
from apps.accounts.pseudonyms import person_pseudonym


def end_links_of(*, project: Project, user: User, by: Actor) -> None:
    """Close the links into the project that the user made, and theirs to members' passwords: they know them all."""
    for invitation in project.invitations.filter(created_by=user, revoked_at=None):
        invitation.revoked_at = timezone.now()
        invitation.save(update_fields=["revoked_at"])
        data = {"reason": "its maker is no owner now"}
        record_audit(
            project=project, actor=by, verb="invitation.revoked", target=invitation.prefix, data=data
        )
    links = AccountLink.objects.filter(project=project, created_by=user, used_at=None)
    links.update(used_at=timezone.now(), send_at=None)


def is_of_an_owner(invitation: Invitation) -> bool:
    """Whether its creator may still create one. One from the command line or a deleted account is valid."""
    return invitation.created_by_id is None or (
        Membership.objects.filter(
            project=invitation.project_id,
            user=invitation.created_by_id,
            role=Role.OWNER,
            user__is_active=True,
        ).exists()
    )


def was_removed_since(user: User, invitation: Invitation) -> bool:
    """Whether an owner removed the user after the link was made: they do not come back by a link they still have."""
    return AuditEvent.objects.filter(
        project=invitation.project_id,
        verb="member.removed",
        target=person_pseudonym(user.email),
        at__gte=invitation.created_at,
    ).exists()
