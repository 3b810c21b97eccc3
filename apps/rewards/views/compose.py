"""Composing an endpoint's spec: components and transforms, with a dry run on stored trajectories."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods
from touchstone_client import RewardServiceError

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.judges.models import Judge
from apps.reward_programs.selectors import list_reward_programs
from apps.rewards import services
from apps.rewards.dry_run import MOST_JUDGED, dry_run
from apps.rewards.forms import ComposeForm
from apps.rewards.models import Endpoint
from apps.rewards.part_schemas import guard_schema, part_schemas
from apps.rewards.selectors import endpoints_of
from apps.training.selectors import models_of
from workers.errors import RewardError

_MOST_OFFERED = 200  # models, newest first


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def endpoint_compose(request: ProjectRequest, project: Project) -> HttpResponse:
    """`?endpoint=` starts from its active revision. POST with `deploy` deploys, with `draft` only fills the form;
    without these, it is a dry run."""
    name = request.POST.get("endpoint") or request.GET.get("endpoint", "")
    endpoint = endpoints_of(project).filter(name=name).first()
    is_draft = "draft" in request.POST
    data = request.POST if request.method == "POST" and not is_draft else None
    spec = request.POST.get("spec", "") if is_draft else _first_spec(project, endpoint)
    form = ComposeForm(data, initial={"endpoint": name, "spec": spec})
    context: dict[str, Any] = {"project": project, "form": form, "endpoint": endpoint}
    context |= {
        "judges": _judges(project),
        "most_judged": MOST_JUDGED,
        "part_schemas": part_schemas(),
        "guard_schema": guard_schema(),
    }
    context["part_tables"] = [(name.capitalize(), parts) for name, parts in context["part_schemas"].items()]
    context["part_choices"] = {
        "model": [str(model) for model in models_of(project)[:_MOST_OFFERED]],
        "judge": [entry["judge"].name for entry in context["judges"]],
        "program": [program.short_name for program in list_reward_programs(project)[:_MOST_OFFERED]],
    }
    if data is not None and form.is_valid():
        spec = form.cleaned_data["spec"]
        try:
            if "deploy" in request.POST:
                revision = services.put_spec(
                    project=project,
                    endpoint_name=name,
                    spec=spec,
                    by=request.user,
                    reason=form.cleaned_data["reason"],
                )
                messages.success(request, f"Deployed revision {revision.number} of {name}.")
                return redirect("rewards:endpoint-detail", project.slug, name)
            context["tried"] = dry_run(project=project, endpoint=endpoint, spec=spec)
            context["is_empty"] = context["tried"] is None
        except (DomainError, RewardError) as error:
            field = {"/endpoint": "endpoint", "/reason": "reason"}.get(error.pointer or "", "spec")
            form.add_error(field, error.message if field == "reason" else _with_pointer(error))
        except RewardServiceError as error:
            context["failure"] = str(error)
    return render(request, "rewards/endpoint_compose.html", context)


def _judges(project: Project) -> list[dict[str, Any]]:
    """Judges that score or label steps, their criteria, and the component of each."""
    rows = project.judges.exclude(mode=Judge.Mode.COMPARE).select_related("llm_connection", "rubric")
    return [
        {
            "judge": judge,
            "criteria": [criterion.name for criterion in judge.criteria if criterion is not None],
            "component": json.dumps(
                {"name": slugify(judge.name) or "judge", "type": "judge", "judge": judge.name}
                | ({"each_step": True} if judge.mode == Judge.Mode.STEPS else {})
            ),
        }
        for judge in rows
    ]


def _with_pointer(error: DomainError | RewardError) -> str:
    return f"{error.pointer}: {error.message}" if error.pointer else error.message


def _first_spec(project: Project, endpoint: Endpoint | None) -> str:
    """Of the active revision; else the newest model alone."""
    if endpoint is not None and endpoint.active is not None:
        return json.dumps(endpoint.active.spec, indent=2)
    model = models_of(project).first()
    component = {"name": "main", "type": "reward_model", "model": str(model or "NAME@VERSION"), "weight": 1.0}
    return json.dumps({"components": [component], "transforms": [{"type": "normalise"}]}, indent=2)
