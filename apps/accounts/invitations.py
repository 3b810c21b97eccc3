"""Links by which people come into a project: made by an owner, good for some people and some days."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts import account_links
from apps.accounts.account_links import Purpose
from apps.accounts.actors import Actor, person_of, require_person_for_owner
from apps.accounts.audit_trail import record_audit
from apps.accounts.grants import is_of_an_owner, was_removed_since
from apps.accounts.models import AccountLink, Invitation, Membership, Project, Role, User
from apps.accounts.selectors import hash_of
from apps.accounts.services import create_user, set_member
from apps.core.errors import DomainError, Forbidden, NotFound

MOST_USES = 1000
MOST_DAYS = 90


@transaction.atomic
def invite(
    *, project: Project, role: Role, by: Actor, email: str = "", most_uses: int = 1, days: int = 14
) -> tuple[Invitation, str]:
    """The invitation and its token, which is nowhere else: only its hash is kept. email: no one else may use it."""
    require_person_for_owner(by, role)
    if not 1 <= most_uses <= MOST_USES:
        raise DomainError(f"A link is for 1 to {MOST_USES} people.", pointer="/most_uses")
    if not 1 <= days <= MOST_DAYS:
        raise DomainError(f"A link can be valid for 1 to {MOST_DAYS} days.", pointer="/days")
    prefix = secrets.token_hex(4)
    token = f"tsi_{prefix}_{secrets.token_urlsafe(32)}"
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        email=email.strip().lower(),
        prefix=f"tsi_{prefix}",
        hash=hash_of(token),
        most_uses=1 if email else most_uses,
        created_by=person_of(by),
        expires_at=timezone.now() + timedelta(days=days),
    )
    data = {"role": role.value, "email": invitation.email, "uses": invitation.most_uses}
    record_audit(project=project, actor=by, verb="invitation.created", target=invitation.prefix, data=data)
    return invitation, token


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: Actor) -> None:
    """End a link at once. Members who joined by it stay."""
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record_audit(
            project=invitation.project, actor=by, verb="invitation.revoked", target=invitation.prefix
        )


def invitation_of(token: str) -> Invitation:
    """Raises NotFound for a token that opens nothing, whatever the reason."""
    found = Invitation.objects.select_related("project").filter(hash=hash_of(token)).first()
    if found is None or not found.is_live or not is_of_an_owner(found):
        raise NotFound("This invitation is no longer valid. Ask the person who sent it for a new one.")
    return found


@transaction.atomic
def accept(*, token: str, user: User) -> Membership:
    """Make the user a member. A member keeps their role, and the link is not used up."""
    invitation = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation_of(token).pk)
    return _accept(invitation, user)


@transaction.atomic
def accept_by_address(*, invitation: Invitation, user: User) -> Membership:
    """Without the link, for the person who showed that the address it was made for is theirs. Raises Forbidden."""
    invitation = Invitation.objects.select_for_update(of=("self",)).get(pk=invitation.pk)
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.email_verified_at is None or invitation.email != user.email:
        raise Forbidden(
            "This invitation is for the owner of its e-mail address, and yours is not verified yet. Verify your "
            "address on the page My projects, log in by single sign-on, or ask the owner for the link."
        )
    return _accept(invitation, user)


def _accept(invitation: Invitation, user: User) -> Membership:
    if not invitation.is_live or not is_of_an_owner(invitation):  # someone was quicker
        raise NotFound("This invitation is no longer valid. Ask the person who sent it for a new one.")
    if invitation.email and invitation.email != user.email:
        raise Forbidden(f"This invitation is for {invitation.email}; you are logged in as {user.email}.")
    known = Membership.objects.filter(project=invitation.project, user=user).first()
    if known is not None:
        return known
    if was_removed_since(user, invitation):
        raise Forbidden(
            "You were removed from this project after the link was created. Ask an owner for a new one."
        )
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
    """A new user by an invitation, and a member at once. Raises Conflict for an address that is known.

    Only where this installation sends no mail: nothing shows that the address is theirs (`ask_to_register`).
    """
    if settings.MAIL:
        raise Forbidden(
            "Request a link to your e-mail address first: this installation verifies addresses by e-mail."
        )
    invitation = invitation_of(token)
    user, _ = create_user(email=invitation.email or email, password=password, name=name.strip())
    accept(token=token, user=user)
    return user


def ask_to_register(*, token: str, email: str) -> None:
    """Have a link mailed to the address, by which its owner makes the account: the same for one that is known."""
    invitation = invitation_of(token)
    email = invitation.email or email.strip().lower()
    account_links.mail_link(email=email, purpose=Purpose.REGISTRATION, invitation=invitation)


@transaction.atomic
def register_by_link(*, link: AccountLink, password: str, name: str = "") -> User:
    """The account of a mailed link: its address is verified. Raises NotFound where the invitation is over."""
    if link.invitation is None:
        raise NotFound("This link is no longer valid.")
    account_links.use_link(link)
    user, _ = create_user(email=link.email, password=password, name=name.strip(), is_verified=True)
    invitation = Invitation.objects.select_for_update(of=("self",)).get(pk=link.invitation.pk)
    _accept(invitation, user)
    return user
