"""Single sign-on by OpenID Connect: allauth does the protocol; here is who may come in by it, and as whom.

Only an address the provider calls verified counts. It leads to the user who has it, or to a new one, who is a member of
nothing until an owner adds them or they follow an invitation.
"""

import logging
from typing import Any, cast

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import User
from apps.accounts.takeover import take_over
from apps.core.http.bounded_session import BoundedSession
from apps.core.http.middleware import error_page
from apps.core.logs import current

SECONDS = 10.0  # of a call to the provider; a login makes up to four

log = logging.getLogger(__name__)


class Adapter(DefaultSocialAccountAdapter):
    def get_requests_session(self) -> BoundedSession:
        """What allauth asks the provider by: whose answers are bounded as those of everyone else are."""
        return BoundedSession(SECONDS)

    def authenticate_by_email(self, sociallogin: Any) -> Any:
        for address in sociallogin.email_addresses:
            address.verified = _is_verified(address)  # some say it in words, "false" too
        return super().authenticate_by_email(sociallogin)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        name = settings.OIDC_NAME
        if sociallogin.is_existing:
            if not sociallogin.user.is_active:
                raise _refused(request, 403, "This account is closed.")
            _claim(sociallogin)
        elif not any(address.verified for address in sociallogin.email_addresses):
            raise _refused(
                request,
                403,
                f"{name} did not confirm that your e-mail address is verified, so it cannot identify you. "
                "Verify it there, or log in with a password.",
            )

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        log.warning("single sign-on did not work: %s %s", error, exception)
        if error == "cancelled":
            raise _refused(request, 403, f"You left {settings.OIDC_NAME} without logging in.")
        raise _refused(
            request,
            502,
            f"{settings.OIDC_NAME} gave an unexpected answer, or the page was open for too long. Log in again; "
            "if it happens again, your administrator finds the reason in the log.",
            reference=current("request"),
        )

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> AbstractBaseUser:
        user = cast(User, sociallogin.user)
        user.email = (data.get("email") or "").strip().lower()
        user.name = str(data.get("name") or "")[:200]
        return user

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> AbstractBaseUser:
        user = cast(User, sociallogin.user)
        user.set_unusable_password()
        user.email_verified_at = timezone.now()
        sociallogin.save(request)
        record_audit(
            project=None, actor=user, verb="user.created", target=user.email, data={"by": settings.OIDC_NAME}
        )
        return user


def _claim(sociallogin: Any) -> None:
    """The provider says that an account's address is theirs. If nothing did before, all others who had it are out."""
    user = cast(User, sociallogin.user)
    claimed = {address.email.lower() for address in sociallogin.email_addresses if _is_verified(address)}
    if user.email_verified_at is not None or user.email not in claimed:
        return
    is_linked = sociallogin.account.pk is not None
    take_over(user=user, why=f"{settings.OIDC_NAME} verified the address")
    user.email_verified_at = timezone.now()
    user.save(update_fields=["email_verified_at"])
    if is_linked:  # its own link ended with all others
        sociallogin.account.pk = sociallogin.account.id = None
        sociallogin.account.user = user
        sociallogin.account.save(force_insert=True)


def _is_verified(address: Any) -> bool:
    return address.verified in (True, "true")


def _refused(request: HttpRequest, status: int, message: str, reference: str = "") -> ImmediateHttpResponse:
    return ImmediateHttpResponse(error_page(request, status=status, message=message, reference=reference))
