"""Logging in, by a password or by a link; choosing and changing a password."""

from typing import cast
from urllib.parse import urlsplit

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts import login_guard, passwords
from apps.accounts.forms import LoginForm, PasswordForm, ResetForm
from apps.accounts.login_guard import Subject
from apps.accounts.models import User
from apps.accounts.new_projects import needs_first_account
from apps.core.errors import Forbidden


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_post_parameters("password")
def log_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect(next_of(request))
    if request.method != "POST":
        return _login_page(request, LoginForm(request))
    if settings.OIDC_ONLY:
        raise Forbidden(f"Passwords do not log in here any more. Log in with {settings.OIDC_NAME}.")
    email = str(request.POST.get("username", "")).strip().lower()[:254]
    attempt = login_guard.begin_login(request, email)
    form = LoginForm(request, data=request.POST)
    if not form.is_valid():
        return _login_page(request, form)
    attempt.succeeded()
    user = form.get_user()
    login = Login(user=user, redirect_url=next_of(request))
    response: HttpResponse = perform_password_login(request, {"email": user.email}, login)
    login_guard.remember_device(request, response, user)
    return response


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_post_parameters()
def password_change(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = PasswordForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST":
        attempt = login_guard.begin_attempt(Subject("password", str(user.pk), resets=True))
        is_valid = form.is_valid()
        if "old_password" not in form.errors:
            attempt.succeeded()
        if is_valid:
            return _change(request, user, form.cleaned_data["new_password1"])
    context = {"form": form, "next": next_of(request), "forced": user.must_change_password}
    return render(request, "accounts/password_change.html", context, status=422 if form.errors else 200)


def _change(request: HttpRequest, user: User, password: str) -> HttpResponse:
    forced = user.must_change_password
    passwords.change_password(user=user, password=password, session_key=request.session.session_key)
    update_session_auth_hash(request, user)
    if forced:
        messages.success(request, "Your password is changed.")
        return redirect(next_of(request))
    return redirect("accounts:password-changed")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def password_reset(request: HttpRequest) -> HttpResponse:
    """Ask for a link by mail. The answer is the same whether there is an account, and so is the work."""
    if settings.OIDC_ONLY:
        raise Forbidden(f"There are no passwords here any more. Log in with {settings.OIDC_NAME}.")
    form = ResetForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not settings.MAIL or not form.is_valid():
        context = {"form": form, "has_mail": bool(settings.MAIL)}
        return render(request, "accounts/password_reset.html", context, status=422 if form.errors else 200)
    email = form.cleaned_data["email"].strip().lower()
    login_guard.begin_attempt(Subject("reset.address", login_guard.address_of(request)))
    login_guard.begin_attempt(Subject("reset.name", email))
    passwords.request_reset(email)
    return render(request, "accounts/password_reset_sent.html", {"email": email})


@login_required
@require_safe
def password_changed(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/password_changed.html")


def next_of(request: HttpRequest) -> str:
    """Where to afterwards: a page of ours, else the projects."""
    target = str(request.POST.get("next") or request.GET.get("next") or "")
    hosts = {request.get_host()}
    if url_has_allowed_host_and_scheme(target, allowed_hosts=hosts, require_https=request.is_secure()):
        path = urlsplit(target)._replace(scheme="", netloc="").geturl() or "/"
        if path.startswith("/") and not path.startswith(
            "//"
        ):  # a word would be the name of a page, // a host
            return path
    return resolve_url(settings.LOGIN_REDIRECT_URL)


def _login_page(request: HttpRequest, form: LoginForm) -> HttpResponse:
    context = {
        "form": form,
        "next": request.POST.get("next") or request.GET.get("next", ""),
        "passwords": not settings.OIDC_ONLY,
        "reset_url": reverse("accounts:password-reset"),
        "is_new": needs_first_account(),
    }
    return render(request, "accounts/login.html", context)
