"""Whose an address is: shown by a letter that arrived there, or by the provider of single sign-on."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts import account_links
from apps.accounts.account_links import Purpose
from apps.accounts.audit_trail import record_audit
from apps.accounts.models import AccountLink, User
from apps.core.errors import DomainError, Forbidden


def ask_to_verify(*, user: User) -> None:
    if not settings.MAIL:
        raise DomainError("This installation sends no mail, so it cannot verify addresses by it.")
    account_links.mail_link(email=user.email, purpose=Purpose.VERIFY, by=user)


@transaction.atomic
def verify_address(*, link: AccountLink, user: User) -> None:
    """Good only for who is signed in with the account: else a letter asked for by someone who made the account under
    another's address would have its owner verify it for them."""
    if link.user_id != user.pk:
        raise Forbidden(f"This link is for {link.email}; you are logged in as {user.email}.")
    account_links.use_link(link)
    note_verified(user=user, how="a mailed link")


@transaction.atomic
def note_verified(*, user: User, how: str) -> None:
    if user.email_verified_at is None:
        user.email_verified_at = timezone.now()
        user.save(update_fields=["email_verified_at"])
        record_audit(project=None, actor=user, verb="address.verified", target=user.email, data={"by": how})


@transaction.atomic
def use_login_link(*, link: AccountLink) -> User:
    """The operator's way in for this account."""
    user = User.objects.get(account_links=link)
    account_links.use_link(link)
    record_audit(project=None, actor=user, verb="login-link.used", target=user.email)
    return user
