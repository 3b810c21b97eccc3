"""What happens to an account when someone shows that its address is theirs, and no one had shown it before.

Someone else may have made it (Sudhodanan & Paverd, "Pre-hijacked accounts", 2022), and may have left a password, a
session, a key, a second factor, a passkey or another sign-on by which to come back. All of it ends.
"""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import transaction

from apps.accounts import account_links
from apps.accounts.audit_trail import record_audit
from apps.accounts.keys import revoke_keys_of
from apps.accounts.models import User
from apps.accounts.sessions import end_sessions


@transaction.atomic
def take_over(*, user: User, why: str) -> None:
    """End every way in that there is. The caller gives the account its new one."""
    had_password = user.has_usable_password()
    user.set_unusable_password()
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])
    ended: dict[str, Any] = {"why": why, "password": had_password}
    ended["sessions"] = end_sessions(user=user, by="account take-over")
    ended["second factors"], _ = Authenticator.objects.filter(user=user).delete()
    ended["sign-ons"], _ = SocialAccount.objects.filter(user=user).delete()
    ended["keys"] = revoke_keys_of(user=user, by=None, reason="account taken over")
    account_links.end_links(user=user)
    if any(value for name, value in ended.items() if name != "why"):
        record_audit(project=None, actor=user, verb="account.taken-over", target=user.email, data=ended)
