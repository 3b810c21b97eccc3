"""A person who leaves: their account is closed, or deleted with what says who they were.

Other apps say here what they do then: they know of judgements and datasets, this one does not.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps.accounts import account_links
from apps.accounts.audit_trail import record_audit
from apps.accounts.idempotency import ENCRYPTED
from apps.accounts.keys import revoke_keys_of
from apps.accounts.models import AccountLink, IdempotentResponse, Invitation, Membership, Project, Role, User
from apps.accounts.pseudonyms import forget_person, person_pseudonym
from apps.accounts.sessions import end_sessions
from apps.core.errors import Conflict, DomainError
from apps.core.registries import NamedRegistry

# Each returns what it did, by name, for the trail and the person who asked.
Closing = Callable[[User], dict[str, int]]
Deleting = Callable[[User, bool], dict[str, int]]  # whether the words of their comments go too
_CLOSING: NamedRegistry[str, Closing] = NamedRegistry()
_DELETING: NamedRegistry[str, Deleting] = NamedRegistry()


def register(app: str, *, closing: Closing | None = None, deleting: Deleting | None = None) -> None:
    """In AppConfig.register. Apps above come first when someone leaves: they look for what those below still have."""
    if closing is not None:
        _CLOSING[app] = closing
    if deleting is not None:
        _DELETING[app] = deleting


@transaction.atomic
def close_account(*, user: User, by: User | str | None, reason: str = "") -> dict[str, int]:
    """No one signs in with it any more; sessions, keys and links end, and held items are free. What they did stays."""
    locked = User.objects.select_for_update().get(pk=user.pk)
    if not locked.is_active:
        return {}
    locked.is_active = user.is_active = False
    locked.save(update_fields=["is_active"])
    done = {
        "sessions": end_sessions(user=user, by=by),
        "keys": revoke_keys_of(user=user, by=by if isinstance(by, User) else None, reason="account closed"),
    }
    account_links.end_links(user=user)
    for closing in reversed(list(_CLOSING.values())):
        done |= closing(user)
    data = done | {"reason": _without(reason, user), "projects without an owner": _ownerless(user)}
    record_audit(project=None, actor=by, verb="user.closed", target=user.email, data=data)
    return done


@transaction.atomic
def reopen_account(*, user: User, by: User | str | None) -> None:
    """They may sign in again. Keys and sessions stay ended."""
    if User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
        record_audit(project=None, actor=by, verb="user.reopened", target=user.email)
    user.is_active = True


@transaction.atomic
def delete_user(
    *, user: User, by: User | str | None, reason: str, erase_comments: bool = False
) -> dict[str, int]:
    """Delete the account and all that says who it was. What was judged stays, under a pseudonym; what was done, here.

    Raises Conflict for the only owner of a project.
    """
    if not reason.strip():
        raise DomainError(
            "Give a reason for deleting the account; the audit trail records it.", pointer="/reason"
        )
    if owned := _only_owned(user):
        raise Conflict(
            f"{user.email} is the only owner of {', '.join(owned)}; make someone else an owner there first."
        )
    done = close_account(user=user, by=by, reason=reason)
    for deleting in reversed(list(_DELETING.values())):
        done |= deleting(user, erase_comments)
    Invitation.objects.filter(email=user.email).delete()
    AccountLink.objects.filter(email=user.email).delete()
    named = Q(body__icontains=user.email) | Q(body__startswith=ENCRYPTED)  # cannot be searched
    IdempotentResponse.objects.filter(named).delete()
    data: dict[str, Any] = done | {"reason": _without(reason, user), "comments erased": erase_comments}
    record_audit(project=None, actor=by, verb="user.deleted", target=person_pseudonym(user.email), data=data)
    email = user.email
    user.delete()
    forget_person(email)
    return done


def _only_owned(user: User) -> list[str]:
    owned = Project.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    others = Membership.objects.filter(role=Role.OWNER).exclude(user=user).values("project")
    return sorted(owned.exclude(pk__in=others).values_list("slug", flat=True))


def _ownerless(user: User) -> list[str]:
    """Projects that no one can look after now: an operator makes someone an owner."""
    owned = Project.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    others = Membership.objects.filter(role=Role.OWNER, user__is_active=True).exclude(user=user)
    return sorted(owned.exclude(pk__in=others.values("project")).values_list("slug", flat=True))


def _without(reason: str, user: User) -> str:
    """Words of the person who deletes are kept forever and do not name the deleted person."""
    for said in filter(None, (user.email, user.name)):
        reason = reason.replace(said, "[the person]")
    return reason.strip()[:500]
