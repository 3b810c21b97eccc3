"""Views of the user's own account: address verification and invitations."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from apps.accounts import addresses, invitations, login_guard
from apps.accounts.login_guard import Subject
from apps.accounts.models import Invitation, User


@login_required
@require_POST
def verify_ask(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    login_guard.begin_attempt(Subject("reset.name", user.email))
    addresses.ask_to_verify(user=user)
    messages.success(request, f"A link is on its way to {user.email}. Open it in this browser.")
    return redirect("accounts:home")


@login_required
@require_POST
def invitation_accept(request: HttpRequest, pk: int) -> HttpResponse:
    """An invitation to one's own address, without its link."""
    user = cast(User, request.user)
    invitation = get_object_or_404(Invitation.objects.select_related("project"), pk=pk, email=user.email)
    invitations.accept_by_address(invitation=invitation, user=user)
    messages.success(request, f"Welcome to {invitation.project.name}.")
    return redirect("accounts:project-home", invitation.project.slug)
