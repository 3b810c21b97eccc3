"""What stands between a session and the pages: a password to change, and what the installation or a project asks for.

How someone signed in is what allauth wrote into the session (`account_authentication_methods`).
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from apps.accounts.models import Project, User

OPERATOR = "operator"  # the method of a session that a link of the operator began
SECOND_FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
_ALWAYS = {"accounts:login", "accounts:logout", "accounts:password-change", "accounts:account-link"}


class AccountGateMiddleware:
    """After AuthenticationMiddleware and UserSessionMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: Any, view: object, arguments: object, named: object
    ) -> HttpResponse | None:
        match = request.resolver_match
        if match.view_name in _ALWAYS or not request.user.is_authenticated:
            return None
        if settings.OIDC_ONLY and not signed_on(request):
            logout(request)
            return go_to(request, reverse("accounts:login"))
        if request.user.must_change_password:
            return go_to(request, reverse("accounts:password-change"))
        return None


def signed_on(request: HttpRequest) -> bool:
    """Whether the session came by single sign-on, or by the operator's way in."""
    return bool(methods_of(request) & {"socialaccount", OPERATOR})


def used_second_factor(request: HttpRequest) -> bool:
    """In this session, and it is still the account's."""
    return "mfa" in methods_of(request) and has_second_factor(_user(request))


def has_second_factor(user: User) -> bool:
    return bool(get_adapter().is_mfa_enabled(user, SECOND_FACTORS))


def methods_of(request: HttpRequest) -> set[str]:
    """How the session's user has shown who they are."""
    return {record["method"] for record in get_authentication_records(request, _user(request))}


def note_operator_login(request: HttpRequest, user: User) -> None:
    record_authentication(request, user, OPERATOR)


def unmet_rules(request: HttpRequest) -> tuple[str, ...]:
    """Sign-in rules that a project may have, by their fields, and this session does not meet."""
    rules = {
        "require_single_sign_on": signed_on(request),
        "require_two_factor": used_second_factor(request),
    }
    return tuple(rule for rule, is_met in rules.items() if not is_met)


def project_refusal(request: HttpRequest, project: Project) -> HttpResponse | None:
    """What the project asks of its members and this session lacks, as a page; None where nothing is missing."""
    if project.require_single_sign_on and not signed_on(request):
        return _explained(request, project, "single-sign-on")
    if project.require_two_factor and not used_second_factor(request):
        step = "second-factor" if has_second_factor(_user(request)) else "set-up-second-factor"
        return _explained(request, project, step)
    return None


def go_to(request: Any, path: str) -> HttpResponse:
    """To another page, and from there back here."""
    here = request.get_full_path() if request.method in ("GET", "HEAD") else "/"
    if request.htmx:
        here = request.htmx.current_url_abs_path or "/"
    target = f"{path}?{urlencode({'next': here})}"
    return HttpResponseClientRedirect(target) if request.htmx else redirect(target)


def _explained(request: Any, project: Project, missing: str) -> HttpResponse:
    if request.htmx:
        return HttpResponseClientRedirect(reverse("accounts:project-home", args=[project.slug]))
    here = request.get_full_path() if request.method in ("GET", "HEAD") else f"/p/{project.slug}/"
    kinds = set(Authenticator.objects.filter(user_id=_user(request).pk).values_list("type", flat=True))
    context = {"project_name": project.name, "missing": missing, "here": here, "kinds": kinds}
    return render(request, "accounts/sign_in_rule.html", context, status=403)


def _user(request: HttpRequest) -> User:
    user: Any = request.user
    return user
