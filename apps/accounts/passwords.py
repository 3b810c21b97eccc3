"""Passwords: chosen by the owner of the account, or, on the command line, by the administrator."""

import secrets

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from apps.accounts import account_links
from apps.accounts.account_links import Purpose
from apps.accounts.audit_trail import record_audit
from apps.accounts.models import AccountLink, Membership, User
from apps.accounts.selectors import signs_on_only
from apps.accounts.sessions import end_sessions
from apps.accounts.takeover import take_over
from apps.core.errors import Conflict, DomainError, Forbidden


@transaction.atomic
def change_password(*, user: User, password: str, session_key: str | None) -> None:
    """The user's own change. Every session but `session_key` ends, and links to a password open nothing."""
    _set_password(user, password)
    end_sessions(user=user, by=user, but=session_key)
    record_audit(project=None, actor=user, verb="password.changed", target=user.email)


@transaction.atomic
def choose_password(*, link: AccountLink, password: str) -> User:
    """Use a link to a password. What was done with the account before is undone where no one showed whose it is.

    Raises Forbidden where the link was made by an owner and the account is in another project by now.
    """
    user = User.objects.select_for_update().get(account_links=link)
    if link.project_id is not None:
        require_only_project(user, link.project_id)
    check_password(password, user)
    account_links.use_link(link)
    if user.email_verified_at is None and link.project_id is None:
        take_over(user=user, why="a link to a password was used")
    _set_password(user, password)
    # A link that someone else was shown proves nothing, whatever was known before.
    user.email_verified_at = (user.email_verified_at or timezone.now()) if link.is_mailed else None
    user.save(update_fields=["email_verified_at"])
    end_sessions(user=user, by=user)
    how = "a mailed link" if link.is_mailed else "a link"
    record_audit(project=None, actor=user, verb="password.changed", target=user.email, data={"by": how})
    return user


@transaction.atomic
def reset_password(
    *, user: User, password: str | None = None, must_change_password: bool = False
) -> tuple[str, int]:
    """The administrator's change, for an account whose password is lost: the new password, made up when none is given,
    and how many sessions ended. Links to a password open nothing afterwards; API keys and second factors stay.

    must_change_password: at the next login, since someone else has seen it. Raises Conflict for an account that is
    closed or logs in by single sign-on.
    """
    if not user.is_active:
        raise Conflict(f"The account {user.email} is closed, so no password opens it.")
    if signs_on_only(user):
        raise Conflict(f"{user.email} has no password here: they log in by single sign-on.")
    if password is None:
        password = secrets.token_urlsafe(12)
    else:
        check_password(password, user)
    _set_password(user, password, must_change_password=must_change_password)
    ended = end_sessions(user=user, by=None)
    record_audit(project=None, actor=None, verb="password.reset", target=user.email, data={"sessions": ended})
    return password, ended


def request_reset(email: str) -> None:
    """Have a link mailed, if the address has an account with a password; the same work if not."""
    account_links.mail_link(
        email=email, purpose=Purpose.PASSWORD, good_for=account_links.MAILED_RESET_GOOD_FOR
    )


@transaction.atomic
def create_member_link(*, membership: Membership, by: User) -> str | None:
    """An owner's link for a member who lost the password: mailed to them, else its token.

    Raises Forbidden unless the account is in this project alone: the person who holds the link can take the account
    over.
    """
    user = membership.user
    require_only_project(user, membership.project_id)
    if signs_on_only(user):
        raise Conflict(f"{user.email} has no password here: they log in by single sign-on.")
    mailed = bool(settings.MAIL)
    record_audit(
        project=membership.project,
        actor=by,
        verb="password-link.created",
        target=user.email,
        data={"mailed": mailed},
    )
    if mailed:
        account_links.mail_link(email=user.email, purpose=Purpose.PASSWORD, by=by)
        return None
    return account_links.show_link(user=user, purpose=Purpose.PASSWORD, by=by, project=membership.project)[1]


def may_make_link(user: User, project_id: int) -> bool:
    """Whether an owner of the project may make a link for this account, or switch its second factor off."""
    others = Membership.objects.filter(user=user).exclude(project_id=project_id)
    return not (user.is_superuser or others.exists())


def check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise DomainError(" ".join(error.messages), pointer="/password") from error
    if user.has_usable_password() and user.check_password(password):
        raise Conflict("This is the password you have. Choose another one.", pointer="/password")


def require_only_project(user: User, project_id: int) -> None:
    if not may_make_link(user, project_id):
        raise Forbidden(
            f"{user.email} is also in another project, so no owner can give out their account. They can reset the "
            "password by e-mail if this installation sends e-mail; otherwise the administrator creates a link: "
            f"`create_password_link {user.email}`."
        )


def _set_password(user: User, password: str, *, must_change_password: bool = False) -> None:
    user.set_password(password)
    user.must_change_password = must_change_password
    user.save(update_fields=["password", "must_change_password"])
    account_links.end_links(user=user)
