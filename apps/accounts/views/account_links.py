"""What links open that are used once: a password to choose, an account to make, an address, a way in."""

from typing import Any

from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from apps.accounts import account_links, addresses, gates, invitations, login_guard, new_projects, passwords
from apps.accounts.account_links import Purpose
from apps.accounts.forms import ChoosePasswordForm, FirstAccountForm
from apps.accounts.login_guard import Subject
from apps.accounts.models import AccountLink, User
from apps.core.errors import Conflict, DomainError, Forbidden, NotFound
from apps.core.forms import add_domain_error

PASSWORDS = "django.contrib.auth.backends.ModelBackend"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_post_parameters("password")
@sensitive_variables("token")
def account_link(request: HttpRequest, token: str) -> HttpResponse:
    """Opening it uses nothing up: programs that look at mail open links too."""
    link = guarded(request, lambda: account_links.link_for(token))
    if link.purpose == Purpose.VERIFY:
        return _verify(request, link)
    if link.purpose == Purpose.LOGIN:
        return _log_in(request, link)
    return _choose_password(request, link)


def guarded(request: HttpRequest, find: Any) -> Any:
    """What a token opens; one that opens nothing counts as guessed."""
    subject = Subject("token", login_guard.address_of(request))
    login_guard.refuse_while_closed(subject)
    try:
        return find()
    except NotFound:
        login_guard.begin_attempt(subject)
        raise


def _choose_password(request: HttpRequest, link: AccountLink) -> HttpResponse:
    if settings.OIDC_ONLY:
        raise Forbidden(f"There are no passwords here any more. Log in with {settings.OIDC_NAME}.")
    is_new = link.purpose == Purpose.REGISTRATION
    form = ChoosePasswordForm(request.POST if request.method == "POST" else None, with_name=is_new)
    context = {"form": form, "link": link, "is_new": is_new}
    if request.method != "POST" or not form.is_valid():
        return render(request, "accounts/account_link.html", context, status=422 if form.errors else 200)
    try:
        if is_new:
            user = invitations.register_by_link(link=link, **form.cleaned_data)
        else:
            user = passwords.choose_password(link=link, **form.cleaned_data)
    except DomainError as error:
        known = " Log in with it instead." if isinstance(error, Conflict) and is_new else ""
        add_domain_error(form, error, more=known)
        return render(request, "accounts/account_link.html", context, status=error.status)
    logout(request)  # the person who was logged in here, under any name
    messages.success(request, "Your password is set.")
    return enter(request, user)


def _verify(request: HttpRequest, link: AccountLink) -> HttpResponse:
    if not request.user.is_authenticated:
        return redirect_to_login(request.path)
    user = request.user
    if request.method != "POST":
        return render(request, "accounts/account_link.html", {"link": link})
    addresses.verify_address(link=link, user=user)
    messages.success(request, f"{user.email} is verified.")
    return redirect("accounts:home")


def _log_in(request: HttpRequest, link: AccountLink) -> HttpResponse:
    if request.method != "POST":
        return render(request, "accounts/account_link.html", {"link": link})
    user = addresses.use_login_link(link=link)
    logout(request)
    gates.note_operator_login(request, user)
    return enter(request, user)


def enter(request: HttpRequest, user: User, to: str = "/") -> HttpResponse:
    """Log in the person who has just shown who they are; a second factor is asked for where there is one."""
    user.backend = PASSWORDS
    response: HttpResponse = perform_login(request, Login(user=user, redirect_url=to))
    login_guard.remember_device(request, response, user)
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_post_parameters("password")
@sensitive_variables("token")
def first_account(request: HttpRequest, token: str) -> HttpResponse:
    """The page to which `up` prints a link while there is no account."""
    guarded(request, lambda: new_projects.check_first_account(token))
    form = FirstAccountForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            user = new_projects.create_first_account(token=token, **form.cleaned_data)
        except DomainError as error:
            add_domain_error(form, error)
        else:
            return enter(request, user)
    return render(request, "accounts/first_account.html", {"form": form}, status=422 if form.errors else 200)
