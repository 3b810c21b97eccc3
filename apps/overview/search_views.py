"""The search page, and the part of it that the command palette shows while someone types."""

from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, User
from apps.overview.search import search_account, search_project

ON_PAGE = 20


@project_view()
@require_safe
def search_page(request: ProjectRequest, project: Project) -> HttpResponse:
    text = request.GET.get("q", "")
    groups = search_project(request.membership, request.user, text, most=ON_PAGE)
    return render(request, "overview/search.html", {"project": project, "q": text, "groups": groups})


@project_view()
@require_safe
def project_palette(request: ProjectRequest, project: Project) -> HttpResponse:
    text = request.GET.get("q", "")
    groups = search_project(request.membership, request.user, text)
    return render(request, "overview/_palette_options.html", {"groups": groups, "q": text})


@login_required
@require_safe
def account_palette(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")
    groups = search_account(cast(User, request.user), text)
    return render(request, "overview/_palette_options.html", {"groups": groups, "q": text})


@login_required
@require_safe
def account_search(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")
    groups = search_account(cast(User, request.user), text, most=ON_PAGE)
    return render(request, "overview/search.html", {"q": text, "groups": groups})
