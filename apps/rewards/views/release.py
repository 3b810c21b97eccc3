"""The staged release of a revision: started, watched, made a canary, promoted or rolled back."""

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
from apps.rewards.deploy_evidence import revision_evidence
from apps.rewards.deploy_gate import failed_model_checks
from apps.rewards.forms import ReleaseForm
from apps.rewards.models import Endpoint, Release
from apps.rewards.selectors import endpoint_of, open_release, pair_statistics, release_decision
from workers.errors import RewardError

ENDED_SHOWN = 10


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def release_start(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`?revision=` fills the form in."""
    endpoint = endpoint_of(project, name)
    asked = {"revision": request.GET.get("revision", "")}
    form = ReleaseForm(endpoint, request.POST if request.method == "POST" else None, initial=asked)
    if request.method == "POST" and form.is_valid():
        revision = form.cleaned_data["revision"]
        try:
            services.start_release(
                revision=revision,
                release_options=form.release_options(),
                by=request.user,
                reason=form.cleaned_data["reason"],
            )
        except (DomainError, RewardError) as error:
            form.add_error({"/share": "share", "/reason": "reason"}.get(error.pointer or ""), error.message)
        else:
            messages.success(request, f"Release of revision {revision.number} started.")
            return redirect("rewards:endpoint-detail", project.slug, name)
    return render(
        request, "rewards/release_start.html", {"project": project, "endpoint": endpoint, "form": form}
    )


@require_safe
@project_view(Role.RESEARCHER)
def release_state(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """The open release, polled while there is one, and those that ended."""
    return render(request, "rewards/_release.html", release_context(endpoint_of(project, name)))


@require_POST
@project_view(Role.RESEARCHER)
def release_canary(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`share`: of a hundred."""

    def change(release: Release) -> str:
        try:
            share = float(request.POST.get("share", "")) / 100
        except ValueError:
            raise DomainError(
                "The share must be a number of per cent, such as 10.", pointer="/share"
            ) from None
        reason = request.POST.get("reason", "")
        services.make_canary(release=release, share=share, by=request.user, deploy_reason=reason)
        return f"Revision {release.revision.number} now answers {100 * share:g} % of requests."

    return _changed(request, project, name, change)


@require_POST
@project_view(Role.RESEARCHER)
def release_promote(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    def change(release: Release) -> str:
        reason = request.POST.get("reason", "").strip()
        services.promote_release(
            release=release,
            by=request.user,
            reason=f"By {request.user}.{f' {reason}' if reason else ''}",
            deploy_reason=reason,
        )
        return f"Revision {release.revision.number} is now active."

    return _changed(request, project, name, change)


@require_POST
@project_view(Role.RESEARCHER)
def release_roll_back(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    def change(release: Release) -> str:
        reason = request.POST.get("reason", "").strip() or f"By {request.user}."
        services.roll_back_release(release=release, by=request.user, reason=reason)
        return f"The release of revision {release.revision.number} was rolled back."

    return _changed(request, project, name, change)


def release_context(endpoint: Endpoint) -> dict[str, Any]:
    release = open_release(endpoint)
    ended = endpoint.releases.exclude(ended_at=None).select_related("revision", "against")
    context: dict[str, Any] = {
        "project": endpoint.project,
        "endpoint": endpoint,
        "release": release,
        "ended_releases": ended.order_by("-ended_at")[:ENDED_SHOWN],
    }
    if release is not None:
        context |= {
            "pairs": pair_statistics(release),
            "decision": release_decision(release),
            "evidence": revision_evidence(release.revision),
            "needs_reason": bool(failed_model_checks(release.revision)) and not release.revision.reason,
        }
    return context


def _changed(
    request: ProjectRequest, project: Project, name: str, change: Callable[[Release], str]
) -> HttpResponse:
    release = open_release(endpoint_of(project, name))
    try:
        if release is None:
            raise NotFound(f"The endpoint {name} has no open release; start one first.")
        messages.success(request, change(release))
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("rewards:endpoint-detail", project.slug, name)
