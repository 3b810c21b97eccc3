"""Invitations: made by an owner, followed by the person who has the link."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts import invitations, login_guard
from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.forms import InvitationForm, JoinForm
from apps.accounts.login_guard import Subject
from apps.accounts.models import Project, Role
from apps.accounts.views.account_links import enter, guarded
from apps.accounts.views.members import member_page
from apps.core.errors import Conflict, DomainError, Forbidden
from apps.core.forms import add_domain_error


@project_view(Role.OWNER)
@require_POST
@never_cache
@sensitive_variables("token", "link")
def invitation_create(request: ProjectRequest, project: Project) -> HttpResponseBase:
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return member_page(request, project, invitation_form=form, status=422)
    role = Role(form.cleaned_data.pop("role"))
    invitation, token = invitations.invite(project=project, role=role, by=request.user, **form.cleaned_data)
    link = request.build_absolute_uri(reverse("accounts:join", args=[token]))
    # Rendered, not redirected to: the link exists only in this answer.
    return member_page(request, project, invitation=invitation, link=link)


@project_view(Role.OWNER, in_archive=True)
@require_POST
def invitation_revoke(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    invitation = get_object_or_404(project.invitations, pk=pk)
    invitations.revoke_invitation(invitation=invitation, by=request.user)
    messages.success(request, "The link opens nothing any more.")
    return redirect("accounts:member-list", project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_post_parameters("password")
def join(request: HttpRequest, token: str) -> HttpResponseBase:
    """Come into a project by a link: as oneself, or as a new user."""
    invitation = guarded(request, lambda: invitations.invitation_of(token))
    context = {"invitation": invitation, "project_name": invitation.project.name, "here": request.path}
    if request.user.is_authenticated:
        if request.method != "POST":
            return render(request, "accounts/join.html", context)
        invitations.accept(token=token, user=request.user)
        messages.success(request, f"Welcome to {invitation.project.name}.")
        return redirect("accounts:project-home", invitation.project.slug)
    form = JoinForm(request.POST if request.method == "POST" else None, email=invitation.email)
    context |= {"form": form, "has_mail": bool(settings.MAIL), "passwords": not settings.OIDC_ONLY}
    if request.method != "POST" or not form.is_valid():
        return render(request, "accounts/join.html", context, status=422 if form.errors else 200)
    return _join_as_new(request, token, form, context)


def _join_as_new(
    request: HttpRequest, token: str, form: JoinForm, context: dict[str, Any]
) -> HttpResponseBase:
    if settings.OIDC_ONLY:
        raise Forbidden(f"Accounts are made by {settings.OIDC_NAME} only.")
    if settings.MAIL:
        email = form.cleaned_data["email"].strip().lower()
        login_guard.begin_attempt(Subject("reset.address", login_guard.address_of(request)))
        login_guard.begin_attempt(Subject("reset.name", email))
        invitations.ask_to_register(token=token, email=email)
        return render(request, "accounts/join.html", context | {"sent_to": email})
    try:
        user = invitations.register(token=token, **form.cleaned_data)
    except DomainError as error:
        add_domain_error(form, error, more=" Log in with it instead." if isinstance(error, Conflict) else "")
        return render(request, "accounts/join.html", context, status=422)
    messages.success(request, f"Welcome to {context['project_name']}.")
    return enter(request, user, reverse("accounts:project-home", args=[context["invitation"].project.slug]))
