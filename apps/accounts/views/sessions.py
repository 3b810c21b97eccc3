"""The sessions of a user, and signing out of them."""

from typing import cast

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.models import User
from apps.accounts.sessions import end_sessions, sessions_of
from apps.core.errors import NotFound


@login_required
@require_safe
@never_cache
def session_list(request: HttpRequest) -> HttpResponse:
    rows = sessions_of(cast(User, request.user), request.session.session_key)
    return render(request, "accounts/session_list.html", {"sessions": rows})


@login_required
@require_POST
def session_end(request: HttpRequest, mark: str) -> HttpResponse:
    user = cast(User, request.user)
    found = next((row for row in sessions_of(user, request.session.session_key) if row.mark == mark), None)
    if found is None:
        raise NotFound("This session has ended already.")
    if found.is_this:
        return _out(request)
    end_sessions(user=user, by=user, only=found.row.session_key)
    messages.success(request, f"{found.device} is signed out.")
    return redirect("accounts:session-list")


@login_required
@require_POST
def session_end_all(request: HttpRequest) -> HttpResponse:
    """Everywhere, here too."""
    user = cast(User, request.user)
    end_sessions(user=user, by=user, but=request.session.session_key)
    return _out(request)


def _out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("accounts:login")
