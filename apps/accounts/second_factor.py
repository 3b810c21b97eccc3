"""Second factors of accounts: what changes with one, and who may switch it off. The protocol is allauth.mfa's."""

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added
from django.db import transaction
from django.http import HttpRequest

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import Membership, User
from apps.accounts.passwords import require_only_project
from apps.accounts.sessions import end_sessions


@transaction.atomic
def reset_second_factor(*, user: User, by: User | None) -> int:
    """Take every second factor from the account, for someone who lost theirs; how many there were. Sessions end."""
    count, _ = Authenticator.objects.filter(user=user).delete()
    end_sessions(user=user, by=by)
    record_audit(
        project=None, actor=by, verb="second-factor.reset", target=user.email, data={"factors": count}
    )
    return count


@transaction.atomic
def reset_members_second_factor(*, membership: Membership, by: User) -> int:
    """By an owner. Raises Forbidden where the account is in another project too."""
    require_only_project(membership.user, membership.project_id)
    return reset_second_factor(user=membership.user, by=by)


def note_added(request: HttpRequest, user: User, authenticator: Authenticator, **more: Any) -> None:
    """The person who set it up has shown it in this session; sessions that have not end."""
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        return
    record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
    end_sessions(user=user, by=user, but=request.session.session_key)


def connect() -> None:
    """allauth tells of changes by signals alone; the trail has them by audit_signals.py."""
    authenticator_added.connect(note_added, dispatch_uid="accounts")
