"""The start page: my projects, and a project's feedback loop or, for annotators, their campaigns."""

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


class LoopStage(NamedTuple):
    """One stage of the feedback loop. Its content is a fragment of the app it belongs to, loaded by URL name."""

    app: str
    icon: str
    title: str
    list_url_name: str
    about: str
    next_action: str  # what leads from this stage to the next


FEEDBACK_LOOP = [
    LoopStage(
        "trajectories",
        "trajectories",
        "Trajectories",
        "trajectories:trajectory-list",
        "Imported agent runs",
        "annotate",
    ),
    LoopStage("annotation", "campaigns", "Campaigns", "annotation:campaign-list", "Human feedback", "freeze"),
    LoopStage(
        "datasets",
        "datasets",
        "Datasets",
        "datasets:dataset-version-list",
        "Frozen feedback, split by task",
        "train",
    ),
    LoopStage(
        "training", "models", "Training", "training:run-list", "Training runs and reward models", "deploy"
    ),
    LoopStage(
        "rewards", "endpoints", "Endpoints", "rewards:endpoint-list", "Rewards for trainers", "monitor"
    ),
    LoopStage(
        "monitoring",
        "warning",
        "Alerts",
        "monitoring:alert-list",
        "Drift and reward hacking checks",
        "review",
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
        context["stages"] = [_stage_context(project, stage) for stage in FEEDBACK_LOOP]
        context["times_url"] = _url("retraining:cycle-times", project)
        return render(request, "accounts/project_home.html", context)
    context["work_url"] = _url("annotation:campaign-list-own", project)
    if sees_models(request.membership):
        shown = [stage for stage in FEEDBACK_LOOP if stage.app in ("training", "rewards")]
        context["stages"] = [_stage_context(project, stage) for stage in shown]
    return render(request, "accounts/project_work.html", context)


@project_view(Role.RESEARCHER, really=True)
@require_POST
def see_as_annotator(request: ProjectRequest, project: Project) -> HttpResponse:
    """Show the project as an annotator sees it, until the user switches back or logs out."""
    seen = set(request.session.get(SEEN_AS_ANNOTATOR, ())) - {project.slug}
    if "back" not in request.POST:
        seen.add(project.slug)
    request.session[SEEN_AS_ANNOTATOR] = sorted(seen)
    return redirect("accounts:project-home", project.slug)


def _stage_context(project: Project, stage: LoopStage) -> dict[str, str]:
    fragment_url = _url(f"{stage.app}:project-node", project)
    return {**stage._asdict(), "url": _url(stage.list_url_name, project), "fragment_url": fragment_url}


def _url(name: str, project: Project) -> str:
    return reverse(name, args=[project.slug])
