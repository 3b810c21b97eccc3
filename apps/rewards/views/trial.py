"""A revision on trial beside the active one: begun, followed, taken further or ended."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.rewards import services
from apps.rewards.forms import TrialForm
from apps.rewards.models import Endpoint, Trial
from apps.rewards.selectors import endpoint_of, open_trial, pairs_of, verdict_of
from workers.errors import RewardError

SHOWN = 10  # trials that ended


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def trial_start(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`?revision=` fills the form in."""
    endpoint = endpoint_of(project, name)
    asked = {"revision": request.GET.get("revision", "")}
    form = TrialForm(endpoint, request.POST if request.method == "POST" else None, initial=asked)
    if request.method == "POST" and form.is_valid():
        revision = form.cleaned_data["revision"]
        try:
            services.start_trial(revision=revision, beside=form.beside(), by=request.user)
        except (DomainError, RewardError) as error:
            form.add_error("share" if error.pointer == "/share" else None, error.message)
        else:
            messages.success(request, f"Revision {revision.number} is on trial.")
            return redirect("rewards:endpoint-detail", project.slug, name)
    return render(
        request, "rewards/trial_start.html", {"project": project, "endpoint": endpoint, "form": form}
    )


@require_safe
@project_view(Role.RESEARCHER)
def trial_state(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """How the open trial stands, polled while there is one, and how others ended."""
    return render(request, "rewards/_trial.html", trial_context(endpoint_of(project, name)))


@require_POST
@project_view(Role.RESEARCHER)
def trial_canary(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`share`: of a hundred."""

    def go_on(trial: Trial) -> str:
        try:
            share = float(request.POST.get("share", "")) / 100
        except ValueError:
            raise DomainError("Say of how many per cent, as a number.", pointer="/share") from None
        services.make_canary(trial=trial, share=share, by=request.user)
        return f"Revision {trial.revision.number} answers {100 * share:g} %."

    return _changed(request, project, name, go_on)


@require_POST
@project_view(Role.RESEARCHER)
def trial_promote(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    def go_on(trial: Trial) -> str:
        services.promote(trial=trial, by=request.user, reason=f"By {request.user}.")
        return f"Revision {trial.revision.number} answers from now on."

    return _changed(request, project, name, go_on)


@require_POST
@project_view(Role.RESEARCHER)
def trial_withdraw(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    def go_on(trial: Trial) -> str:
        reason = request.POST.get("reason", "").strip() or f"By {request.user}."
        services.withdraw(trial=trial, by=request.user, reason=reason)
        return f"The trial of revision {trial.revision.number} is over."

    return _changed(request, project, name, go_on)


def trial_context(endpoint: Endpoint) -> dict[str, Any]:
    trial = open_trial(endpoint)
    ended = endpoint.trials.exclude(ended_at=None).select_related("revision", "against")
    context: dict[str, Any] = {
        "project": endpoint.project,
        "endpoint": endpoint,
        "trial": trial,
        "ended_trials": ended.order_by("-ended_at")[:SHOWN],
    }
    if trial is not None:
        context |= {"pairs": pairs_of(trial), "verdict": verdict_of(trial)}
    return context


def _changed(
    request: ProjectRequest, project: Project, name: str, go_on: Callable[[Trial], str]
) -> HttpResponse:
    trial = open_trial(endpoint_of(project, name))
    try:
        if trial is None:
            raise NotFound(f"Nothing is on trial on {name}.")
        messages.success(request, go_on(trial))
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("rewards:endpoint-detail", project.slug, name)
