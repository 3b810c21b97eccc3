"""Links by which people come into a project: made by an owner, good for some people and some days."""

import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import Invitation, Membership, Project, Role, User
from apps.accounts.selectors import hash_of
from apps.accounts.services import create_user, record_audit, set_member
from apps.core.errors import DomainError, Forbidden, NotFound

MOST_USES = 1000
MOST_DAYS = 90


@transaction.atomic
def invite(
    *, project: Project, role: Role, by: User, email: str = "", most_uses: int = 1, days: int = 14
) -> tuple[Invitation, str]:
    """The invitation and its token, which is nowhere else: only its hash is kept. email: nobody else may use it."""
    if not 1 <= most_uses <= MOST_USES:
        raise DomainError(f"A link is for 1 to {MOST_USES} people.", pointer="/most_uses")
    if not 1 <= days <= MOST_DAYS:
        raise DomainError(f"A link is good for 1 to {MOST_DAYS} days.", pointer="/days")
    prefix = secrets.token_hex(4)
    token = f"tsi_{prefix}_{secrets.token_urlsafe(32)}"
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        email=email.strip().lower(),
        prefix=f"tsi_{prefix}",
        hash=hash_of(token),
        most_uses=1 if email else most_uses,
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    data = {"role": role.value, "email": invitation.email, "uses": invitation.most_uses}
    record_audit(project=project, actor=by, verb="invitation.created", target=invitation.prefix, data=data)
    return invitation, token


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User) -> None:
    """End a link at once. Whoever came by it stays."""
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record_audit(
            project=invitation.project, actor=by, verb="invitation.revoked", target=invitation.prefix
        )


def invitation_of(token: str) -> Invitation:
    """Raises NotFound for a token that opens nothing, whatever the reason."""
    found = Invitation.objects.select_related("project").filter(hash=hash_of(token)).first()
    if found is None or not found.is_live:
        raise NotFound("This invitation is no longer good. Ask whoever sent it for another one.")
    return found


@transaction.atomic
def accept(*, token: str, user: User) -> Membership:
    """Make the user a member. Whoever is one already stays what she is, and the link is not used up."""
    invitation = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation_of(token).pk)
    if not invitation.is_live:  # somebody was quicker
        raise NotFound("This invitation is no longer good. Ask whoever sent it for another one.")
    if invitation.email and invitation.email != user.email:
        raise Forbidden(f"This invitation is for {invitation.email}; you are logged in as {user.email}.")
    known = Membership.objects.filter(project=invitation.project, user=user).first()
    if known is not None:
        return known
    Invitation.objects.filter(pk=invitation.pk).update(uses=F("uses") + 1)
    member = set_member(project=invitation.project, user=user, role=Role(invitation.role), by=user)
    data = {"as": user.email, "role": invitation.role}
    record_audit(
        project=invitation.project,
        actor=user,
        verb="invitation.accepted",
        target=invitation.prefix,
        data=data,
    )
    return member


@transaction.atomic
def register(*, token: str, email: str, password: str, name: str = "") -> User:
    """A new user by an invitation, and a member at once. Raises Conflict for an address that is known."""
    invitation = invitation_of(token)
    user, _ = create_user(email=invitation.email or email, password=password, name=name.strip())
    accept(token=token, user=user)
    return user
