"""The words and events that moved the reward of a trajectory, loaded when they are asked for."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from touchstone_client import RewardServiceError

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import NotFound
from apps.rewards.reasons import explain_reward, models_with_reasons
from apps.trajectories.selectors import require_trajectory


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_reasons(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """By the model `?model=NAME@VERSION` of the project, by default its newest that gives reasons."""
    trajectory = require_trajectory(project, pk)
    models = list(models_with_reasons(project))
    wanted = request.GET.get("model", "")
    chosen = next((model for model in models if wanted in ("", f"{model.name}@{model.version}")), None)
    if wanted and chosen is None:
        raise NotFound(f"{project} has no model {wanted[:100]} that gives reasons; choose one of the list.")
    context: dict[str, Any] = {"project": project, "trajectory": trajectory, "models": models}
    context["chosen"] = chosen
    if chosen is not None:
        try:
            context["explained"] = explain_reward(model=chosen, trajectory=trajectory)
        except RewardServiceError as error:
            context["failure"] = str(error)
    template = "_trajectory_reasons" if request.htmx else "trajectory_reasons"  # type: ignore[attr-defined]
    return render(request, f"rewards/{template}.html", context)
