"""Usage of an endpoint, and its samples."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import NotFound
from apps.rewards import services
from apps.rewards.forms import SamplesForm
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of, trajectory_of
from apps.rewards.traffic import BY, SPANS, traffic_of
from apps.trajectories.card_rendering import render_step_cards

STEPS_SHOWN = 100


@require_safe
@project_view(Role.RESEARCHER)
def endpoint_usage(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`?span=day|week|month`, `?by=version|caller|run|policy_version`."""
    return _usage(request, endpoint_of(project, name))


def _usage(request: ProjectRequest, endpoint: Endpoint, form: SamplesForm | None = None) -> HttpResponse:
    span, by = request.GET.get("span", "day"), request.GET.get("by", "policy_version")
    span, by = span if span in SPANS else "day", by if by in BY else "policy_version"
    context = {
        "project": endpoint.project,
        "endpoint": endpoint,
        "samples_form": form or SamplesForm(endpoint),
        "traffic": traffic_of(endpoint, span=span, by=by),
        "samples": endpoint.samples.order_by("-at")[:20],
        "span": span,
        "by": by,
        "spans": list(SPANS),
        "columns": BY,
        "column": BY[by],
    }
    return render(request, "rewards/endpoint_usage.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def endpoint_samples(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """Sampling settings; a share of 0 deletes all samples."""
    endpoint = endpoint_of(project, name)
    form = SamplesForm(endpoint, request.POST)
    if not form.is_valid():
        return _usage(request, endpoint, form)
    services.keep_samples(endpoint=endpoint, by=request.user, **form.settings())
    kept = form.cleaned_data["share"] > 0
    messages.success(request, "Sampling is on." if kept else "Sampling is off; all samples were deleted.")
    return redirect("rewards:endpoint-usage", project.slug, name)


@require_safe
@project_view(Role.RESEARCHER)
def sample_detail(request: ProjectRequest, project: Project, name: str, pk: int) -> HttpResponse:
    """A sampled item as a trajectory, with the reward of each step."""
    sample = endpoint_of(project, name).samples.filter(pk=pk).select_related("endpoint").first()
    if sample is None:
        raise NotFound(
            "There is no such sample; samples are deleted at the end of the retention on the endpoint's usage page."
        )
    trajectory = trajectory_of(sample)
    cards = render_step_cards(trajectory, STEPS_SHOWN) if trajectory else []
    context = {
        "project": project,
        "sample": sample,
        "cards": cards,
        "hidden": len(trajectory.steps) - len(cards) if trajectory else 0,
    }
    return render(request, "rewards/sample_detail.html", context)
