"""Events of the trail that Django and allauth tell of, whichever page or provider someone came by."""

from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth import signals
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import AuditEvent, User
from apps.accounts.pseudonyms import network_pseudonym, person_pseudonym
from apps.core.http.client_address import client_address

UNKNOWN = "unknown person"
FAILED = "user.sign-in-failed"
# Guessing fills no trail: beyond this many failures for a person in this time, one more line says that there are more.
MOST_FAILURES = 20
FAILURES_WITHIN = timedelta(minutes=10)


def connect() -> None:
    """Once, when the apps are ready."""
    signals.user_logged_in.connect(_signed_in, dispatch_uid="audit")
    signals.user_logged_out.connect(_signed_out, dispatch_uid="audit")
    signals.user_login_failed.connect(_failed, dispatch_uid="audit")
    if apps.is_installed("allauth.mfa"):
        from allauth.mfa import signals as mfa

        for verb, signal in (
            ("added", mfa.authenticator_added),
            ("removed", mfa.authenticator_removed),
            ("reset", mfa.authenticator_reset),
        ):
            signal.connect(_second_factor(verb), dispatch_uid=f"audit {verb}", weak=False)


def came_from(request: HttpRequest | None, user: User | None) -> dict[str, str]:
    """The network a request came from, as a pseudonym that is forgotten with the person."""
    address = client_address(request) if request is not None and request.META.get("REMOTE_ADDR") else ""
    if not address:
        return {}
    return {"from": network_pseudonym(address, of_person=person_pseudonym(user.email) if user else "")}


def _signed_in(sender: Any, request: HttpRequest | None, user: User, **more: Any) -> None:
    record_audit(project=None, actor=user, verb="user.signed-in", data=came_from(request, user))


def _signed_out(sender: Any, request: HttpRequest | None, user: User | None, **more: Any) -> None:
    if user is not None and user.pk is not None:  # a user deleted meanwhile is not named again
        record_audit(project=None, actor=user, verb="user.signed-out", data=came_from(request, user))


def _failed(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
) -> None:
    """Of a name no one has, the name is not kept: it may be a password typed into the wrong field."""
    name = str(credentials.get("username") or credentials.get("email") or "").strip().lower()
    user = User.objects.filter(email=name).first()
    actor = person_pseudonym(user.email) if user else UNKNOWN
    lately = AuditEvent.objects.filter(
        project=None, actor=actor, verb__startswith=FAILED, at__gt=timezone.now() - FAILURES_WITHIN
    )
    failures = lately[: MOST_FAILURES + 1].count()
    if failures < MOST_FAILURES:
        record_audit(project=None, actor=actor, verb=FAILED, data=came_from(request, user))
    elif failures == MOST_FAILURES:
        record_audit(
            project=None, actor=actor, verb=f"{FAILED}-often", data={"more": "not recorded one by one"}
        )


def _second_factor(verb: str) -> Any:
    def changed(
        sender: Any, request: HttpRequest | None, user: User, authenticator: Any = None, **more: Any
    ) -> None:
        kind = str(getattr(authenticator, "type", ""))
        data = {"kind": kind} | came_from(request, user)
        record_audit(project=None, actor=user, verb=f"user.second-factor-{verb}", data=data)

    return changed
