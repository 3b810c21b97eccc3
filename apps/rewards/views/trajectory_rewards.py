"""The reward of a trajectory by an endpoint or a model, loaded into its page when it is asked for."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods
from touchstone_client import RewardServiceError

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.rewards.trajectory_rewards import score_trajectory, scorer_choices
from apps.trajectories.selectors import require_trajectory


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def trajectory_rewards(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """What there is to choose from; by POST, since it may cost money: the reward by `scorer` (score_trajectory)."""
    trajectory = require_trajectory(project, pk)
    scorer = request.POST.get("scorer", "")
    choices = scorer_choices(project)
    context: dict[str, Any] = {"project": project, "trajectory": trajectory}
    context |= {"choices": choices, "scorer": scorer}
    if scorer:
        try:
            context["score"] = score_trajectory(project=project, trajectory=trajectory, scorer=scorer)
        except RewardServiceError as error:
            context["failure"] = str(error)
    template = "_trajectory_rewards" if request.htmx else "trajectory_rewards"  # type: ignore[attr-defined]
    return render(request, f"rewards/{template}.html", context)
