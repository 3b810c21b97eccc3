"""Links that are used once: to choose a password, to register, to show that an address is one's own, to log in.

Where this installation sends mail (`settings.MAIL`) they are mailed, and show by arriving whose the address is. Else
they are shown to the person who asked for them, who hands them over; such a link shows nothing about the address.

A letter is written by the process that finds it due (beat), not by the request that asks for it: the request does the
same work whether the account exists or not. What is kept of a token is a hash, so each attempt to send it makes a new
one.
"""

import logging
import secrets
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import AccountLink, Invitation, Project, User
from apps.accounts.selectors import hash_of, signs_on_only
from apps.core.errors import NotFound

log = logging.getLogger(__name__)

Purpose = AccountLink.Purpose
GOOD_FOR = {
    Purpose.PASSWORD: timedelta(days=3),
    Purpose.REGISTRATION: timedelta(days=3),
    Purpose.VERIFY: timedelta(days=1),
    Purpose.LOGIN: timedelta(minutes=15),
}
MAILED_RESET_GOOD_FOR = timedelta(hours=2)
WAITS = (1, 5, 30)  # minutes before the second attempt to send a letter, the third, ...
AT_ONCE = 20  # letters in one pass
_CLAIM = timedelta(minutes=2)


@transaction.atomic
def show_link(
    *, user: User, purpose: AccountLink.Purpose, by: User | None, project: Project | None = None
) -> tuple[AccountLink, str]:
    """A link for its maker to hand over, and its token, which is nowhere else. Earlier ones are no longer good.

    project: of the owner who makes it; the link is good only while the account is in no other project.
    """
    end_links(user=user, purpose=purpose)
    token = _token()
    link = AccountLink.objects.create(
        purpose=purpose,
        user=user,
        email=user.email,
        project=project,
        created_by=by,
        hash=hash_of(token),
        expires_at=timezone.now() + GOOD_FOR[purpose],
    )
    return link, token


def mail_link(
    *,
    email: str,
    purpose: AccountLink.Purpose,
    by: User | None = None,
    invitation: Invitation | None = None,
    good_for: timedelta | None = None,
) -> AccountLink:
    """Have a link mailed to the address. Whether there is an account is looked at when it is written."""
    now = timezone.now()
    return AccountLink.objects.create(
        purpose=purpose,
        email=email,
        invitation=invitation,
        created_by=by,
        is_mailed=True,
        hash=hash_of(_token()),  # of no letter
        expires_at=now + (good_for or GOOD_FOR[purpose]),
        send_at=now,
    )


def link_for(token: str) -> AccountLink:
    """Raises NotFound for a token that opens nothing, whatever the reason."""
    rows = AccountLink.objects.select_related("user", "invitation__project", "project")
    link = rows.filter(hash=hash_of(token)).first()
    if link is None or not link.is_live or (link.user is not None and not link.user.is_active):
        raise NotFound("This link is no longer valid: it was already used or has expired. Request a new one.")
    return link


def use_link(link: AccountLink) -> None:
    """Use it up. Raises NotFound if someone was quicker. Within the transaction of what it is used for."""
    if not AccountLink.objects.filter(pk=link.pk, used_at=None).update(used_at=timezone.now()):
        raise NotFound("This link was used a moment ago.")


def end_links(*, user: User, purpose: AccountLink.Purpose | None = None) -> None:
    rows = AccountLink.objects.filter(email=user.email, used_at=None)
    if purpose is not None:
        rows = rows.filter(purpose=purpose)
    rows.update(used_at=timezone.now(), send_at=None)


def forget_old_links() -> None:
    AccountLink.objects.filter(expires_at__lt=timezone.now() - timedelta(days=1)).delete()


def send_due_links() -> int:
    """Send the letters that wait; how many went out. An attempt that dies is followed by another."""
    sent = 0
    for _ in range(AT_ONCE):
        claimed = _claim()
        if claimed is None:
            break
        sent += _send(*claimed)
    return sent


@transaction.atomic
def _claim() -> tuple[AccountLink, str] | None:
    now = timezone.now()
    rows = AccountLink.objects.select_for_update(of=("self",), skip_locked=True)
    link = rows.filter(send_at__lte=now, used_at=None, expires_at__gt=now).order_by("send_at", "pk").first()
    if link is None:
        return None
    token = _token()
    link.attempts, link.send_at, link.hash = link.attempts + 1, now + _CLAIM, hash_of(token)
    link.user = User.objects.filter(email=link.email, is_active=True).first()
    link.save(update_fields=["attempts", "send_at", "hash", "user"])
    return link, token


def _send(link: AccountLink, token: str) -> bool:
    letter = _letter(link, token)
    if letter is None:
        AccountLink.objects.filter(pk=link.pk).delete()
        return False
    subject, body = letter
    try:
        EmailMessage(subject=subject, body=body, to=[link.email]).send()
    except (SMTPException, OSError) as error:
        is_last = link.attempts > len(WAITS)
        link.send_at = None if is_last else timezone.now() + timedelta(minutes=WAITS[link.attempts - 1])
        log.warning("a %s link was not mailed: %s: %s", link.purpose, type(error).__name__, error)
        link.save(update_fields=["send_at"])
        return False
    link.send_at = None
    link.save(update_fields=["send_at"])
    return True


def _letter(link: AccountLink, token: str) -> tuple[str, str] | None:
    """Subject and text; None where there is no one to write to."""
    url = f"{settings.PUBLIC_URL}{reverse('accounts:account-link', args=[token])}"
    until = f"The link works once, until {link.expires_at:%d %B %Y, %H:%M} UTC."
    ignore = "If you did not request this, ignore this message; nothing changes."
    if link.purpose == Purpose.REGISTRATION:
        return _registration_letter(link, url, until, ignore)
    if link.user is None or not _may_have_password(link):
        return None
    if link.purpose == Purpose.VERIFY:
        return (
            "Verify your e-mail address",
            f"Verify this address for Touchstone:\n\n{url}\n\n{until}\n{ignore}\n",
        )
    return (
        "Choose a password for Touchstone",
        f"Choose a password for your account {link.email}:\n\n{url}\n\n{until}\n{ignore}\n",
    )


def _registration_letter(link: AccountLink, url: str, until: str, ignore: str) -> tuple[str, str] | None:
    if link.invitation is None:
        return None
    name = link.invitation.project.name
    if link.user is not None:
        return (
            f"Join {name} on Touchstone",
            f"You have an account with this address already. Log in to Touchstone, then open the invitation to {name} "
            f"again. If you do not know the password, reset it on the login page.\n\n"
            f"{settings.PUBLIC_URL}{reverse('accounts:login')}\n\n{ignore}\n",
        )
    return (
        f"Join {name} on Touchstone",
        f"Create your account and join {name}:\n\n{url}\n\n{until}\n{ignore}\n",
    )


def _may_have_password(link: AccountLink) -> bool:
    """Not where single sign-on alone leads in: a password would outlive the account at the provider."""
    return link.purpose != Purpose.PASSWORD or not (link.user and signs_on_only(link.user))


def _token() -> str:
    return f"tsl_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
