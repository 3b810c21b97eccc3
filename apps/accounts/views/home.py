"""The start page: my projects, a new one, and the way to see one as its annotators do."""

from typing import cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts import selectors
from apps.accounts.access import SEEN_AS_ANNOTATOR, ProjectRequest, project_view
from apps.accounts.forms import ProjectForm
from apps.accounts.models import Project, Role, User
from apps.accounts.new_projects import create_own_project, may_create_projects
from apps.accounts.tables import ProjectTable
from apps.core.errors import DomainError, Forbidden


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    memberships, invitations = selectors.memberships_of(user), selectors.invitations_for(user)
    if len(memberships) == 1 and not invitations and "all" not in request.GET:
        return redirect("accounts:project-home", memberships[0].project.slug)
    context = {
        "table": ProjectTable(request, memberships),
        "memberships": memberships,
        "invitations": invitations,
        "has_mail": bool(settings.MAIL),
        "form": ProjectForm() if may_create_projects(user) else None,
    }
    return render(request, "accounts/project_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def project_create(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    if not may_create_projects(user):
        raise Forbidden("You cannot create projects on this installation. Ask your administrator for one.")
    form = ProjectForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            project = create_own_project(name=form.cleaned_data["name"], by=user)
        except DomainError as error:
            form.add_error("name", error.message)
        else:
            return redirect("accounts:project-home", project.slug)
    context = {"form": form}
    return render(request, "accounts/project_create.html", context, status=422 if form.errors else 200)


@login_required
@require_safe
def project_switch(request: HttpRequest) -> HttpResponse:
    """The entries of the menu that switches between projects."""
    user = cast(User, request.user)
    context = {
        "memberships": selectors.memberships_of(user),
        "here": request.GET.get("here", ""),
        "may_create": may_create_projects(user),
    }
    return render(request, "accounts/_project_switch.html", context)


@project_view(Role.RESEARCHER, really=True)
@require_POST
def see_as_annotator(request: ProjectRequest, project: Project) -> HttpResponse:
    """Show the project as an annotator sees it, until the user switches back or logs out."""
    seen = set(request.session.get(SEEN_AS_ANNOTATOR, ())) - {project.slug}
    if "back" not in request.POST:
        seen.add(project.slug)
    request.session[SEEN_AS_ANNOTATOR] = sorted(seen)
    return redirect("accounts:project-home", project.slug)
