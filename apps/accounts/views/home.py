"""Where one arrives: my projects, and a project's circle or, for annotators, its work."""

from typing import Any, NamedTuple, cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts import selectors
from apps.accounts.access import SEEN_AS_ANNOTATOR, ProjectRequest, project_view, sees_models
from apps.accounts.models import Project, Role, User


class Node(NamedTuple):
    """One station of the circle. Its inside is a fragment of the app it belongs to, loaded by URL name."""

    app: str
    icon: str
    title: str
    room: str  # URL name
    about: str
    leads_to: str  # what happens between this station and the next


CIRCLE = [
    Node(
        "trajectories",
        "trajectories",
        "Trajectories",
        "trajectories:trajectory-list",
        "What agents did",
        "compare",
    ),
    Node(
        "annotation",
        "campaigns",
        "Campaigns",
        "annotation:campaign-list",
        "What people think of it",
        "freeze",
    ),
    Node("datasets", "datasets", "Datasets", "datasets:dataset-version-list", "Judgements, frozen", "train"),
    Node("training", "models", "Runs and models", "training:run-list", "What learns from them", "deploy"),
    Node(
        "rewards",
        "endpoints",
        "Endpoints",
        "rewards:endpoint-list",
        "Rewards for trainers",
        "watch",
    ),
    Node(
        "monitoring",
        "warning",
        "What came back",
        "monitoring:alert-list",
        "What needs a person",
        "people look at it",
    ),
]


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    memberships, invitations = selectors.memberships_of(user), selectors.invitations_for(user)
    if len(memberships) == 1 and not invitations and "all" not in request.GET:
        return redirect("accounts:project-home", memberships[0].project.slug)
    context = {"memberships": memberships, "invitations": invitations, "has_mail": bool(settings.MAIL)}
    return render(request, "accounts/project_list.html", context)


@project_view()
@require_safe
def project_home(request: ProjectRequest, project: Project) -> HttpResponse:
    context: dict[str, Any] = {"project": project}
    if Role(request.membership.role).includes(Role.RESEARCHER):
        context["nodes"] = [_drawn(project, node) for node in CIRCLE]
        context["times_url"] = _url("monitoring:turn-times", project)
        return render(request, "accounts/project_home.html", context)
    context["work_url"] = _url("annotation:my-work", project)
    if sees_models(request.membership):
        context["nodes"] = [_drawn(project, node) for node in CIRCLE if node.app in ("training", "rewards")]
    return render(request, "accounts/project_work.html", context)


@project_view(Role.RESEARCHER, really=True)
@require_POST
def see_as_annotator(request: ProjectRequest, project: Project) -> HttpResponse:
    """Look at the project as an annotator does, until one looks as oneself again or logs out."""
    seen = set(request.session.get(SEEN_AS_ANNOTATOR, ())) - {project.slug}
    if "back" not in request.POST:
        seen.add(project.slug)
    request.session[SEEN_AS_ANNOTATOR] = sorted(seen)
    return redirect("accounts:project-home", project.slug)


def _drawn(project: Project, node: Node) -> dict[str, str]:
    urls = {"url": _url(node.room, project), "fragment_url": _url(f"{node.app}:project-node", project)}
    return {**node._asdict(), **urls}


def _url(name: str, project: Project) -> str:
    return reverse(name, args=[project.slug])
