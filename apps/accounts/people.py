"""An owner adds a person by an address. No password is made: the person who owns the address chooses one by a link."""

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from apps.accounts import account_links, invitations
from apps.accounts.account_links import Purpose
from apps.accounts.actors import person_of
from apps.accounts.models import AccountLink, ApiKey, Invitation, Project, Role, User
from apps.accounts.services import create_user_without_password, set_member


@dataclass(frozen=True)
class AddedPerson:
    """link and token: to a password, where no mail is sent. invitation: they are no member before they accept it."""

    email: str
    is_member: bool
    is_mailed: bool = False
    link: AccountLink | None = None
    invitation: Invitation | None = None
    token: str = ""


@transaction.atomic
def add_person(*, project: Project, email: str, role: Role, by: User | ApiKey) -> AddedPerson:
    """A member, or where nothing shows that the account is of the person who owns the address, an invitation for them.

    Such an account may have been made, under this address, by someone else: another project's owner, or anyone who had
    an open invitation.
    """
    user = User.objects.select_for_update().filter(email=email).first()
    if user is None:
        return _add_new(project, email, role, by)
    if user.email_verified_at is not None:
        set_member(project=project, user=user, role=role, by=by)
        return AddedPerson(email, is_member=True)
    invitation, token = invitations.invite(project=project, role=role, by=by, email=email)
    return AddedPerson(email, is_member=False, invitation=invitation, token=token)


def _add_new(project: Project, email: str, role: Role, by: User | ApiKey) -> AddedPerson:
    user = create_user_without_password(email=email, by=by)
    set_member(project=project, user=user, role=role, by=by)
    if settings.MAIL:
        account_links.mail_link(email=user.email, purpose=Purpose.PASSWORD, by=person_of(by))
        return AddedPerson(user.email, is_member=True, is_mailed=True)
    link, token = account_links.show_link(
        user=user, purpose=Purpose.PASSWORD, by=person_of(by), project=project
    )
    return AddedPerson(user.email, is_member=True, link=link, token=token)
