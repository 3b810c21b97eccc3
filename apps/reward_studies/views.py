"""Pages of reward studies: those there are, a new one, and what was found."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.reward_studies import charts, services
from apps.reward_studies.forms import RewardStudyForm
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.selectors import get_reward_study
from apps.reward_studies.tables import RewardStudyTable
from apps.reward_studies.text_features import FEATURE_LABELS
from apps.rewards.models import Endpoint
from workers.errors import RewardError

_FIELDS = {"/filter": "filter", "/sample": "sample", "/dataset": "dataset", "/campaign": "campaign"}


@require_safe
@project_view(Role.RESEARCHER)
def study_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = RewardStudyTable(request, RewardStudy.objects.filter(project=project), project=project)
    return table.response("reward_studies/study_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def study_create(request: ProjectRequest, project: Project) -> HttpResponse:
    """The button `start` starts it; other values, of an address or of the compose page, fill the form."""
    data = request.POST if "start" in request.POST else None
    form = RewardStudyForm(data, project=project, initial=_initial(request, project))
    if data is not None and form.is_valid():
        try:
            study = services.start_reward_study(project=project, by=request.user, **form.arguments())
            return redirect("reward_studies:study-detail", project.slug, study.pk)
        except (DomainError, RewardError) as error:
            pointer = error.pointer or ""
            field = _FIELDS.get(pointer, "spec")
            form.add_error(field, error.message if field != "spec" else f"{pointer} {error.message}".strip())
    context = {"project": project, "form": form}
    return render(request, "reward_studies/study_create.html", context, status=422 if form.errors else 200)


def _initial(request: ProjectRequest, project: Project) -> dict[str, Any]:
    given = request.POST if request.method == "POST" else request.GET
    values = {
        name: given[name] for name in ("kind", "endpoint", "spec", "campaign", "filter") if name in given
    }
    endpoint = Endpoint.objects.filter(project=project, name=values.get("endpoint", "")).first()
    if "spec" not in values and endpoint is not None and endpoint.active is not None:
        values["spec"] = json.dumps(endpoint.active.spec, indent=2)
    return values


@require_safe
@project_view(Role.RESEARCHER)
def study_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`?drawn=`: the trajectory whose steps are drawn."""
    study = get_reward_study(project, pk)
    context: dict[str, Any] = {"project": project, "study": study, "options": study.options}
    if study.state == JobState.SUCCEEDED:
        is_fit = study.kind == RewardStudy.Kind.WEIGHTS
        context |= _weights(study) if is_fit else _analysis(study, request.GET.get("drawn", ""))
    return render(request, f"reward_studies/study_{study.kind}.html", context)


def _weights(study: RewardStudy) -> dict[str, Any]:
    result = study.result
    has_weights = any(part["weight"] for part in result["components"])
    trade_off = result["trade_off"]
    return {
        "result": result,
        "new_spec": json.dumps(services.spec_with_weights(study), indent=2) if has_weights else "",
        "left": [part["name"] for part in result["components"] if not part["weight"]],
        "weight_chart": charts.weight_chart(result),
        "accuracy_chart": charts.accuracy_chart(result),
        "path_chart": charts.path_chart(result),
        "trade_off_chart": charts.trade_off_chart(trade_off) if trade_off else None,
        "trade_off_accuracy_chart": charts.trade_off_accuracy_chart(trade_off) if trade_off else None,
    }


def _analysis(study: RewardStudy, drawn: str) -> dict[str, Any]:
    result = study.result
    names = [part["name"] for part in result["components"]]
    chosen = next(
        (row for row in result["drawn"] if str(row["trajectory"]) == drawn),
        result["drawn"][0] if result["drawn"] else None,
    )
    probes = [
        (label, probe, [probe["components"][part] for part in names] if probe else [])
        for name, label in charts.PROBE_LABELS.items()
        if (probe := result["probes"].get(name)) or name in result["probes"]
    ]
    return {
        "result": result,
        "names": names,
        "rows": list(zip(names, result["correlations"], strict=True)),
        "share_chart": charts.share_chart(result["components"]),
        "probes": probes,
        "probe_chart": charts.probe_chart(result["probes"]),
        "chosen": chosen,
        "step_chart": charts.step_chart(chosen) if chosen else None,
        "format_rows": [
            (FEATURE_LABELS[row["feature"]], row, [row["components"][name] for name in names])
            for row in result["format"]
        ],
    }


@require_safe
@project_view(Role.RESEARCHER)
def study_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the study ends; the whole page is reloaded then."""
    study = get_reward_study(project, pk)
    return job_fragment(
        request,
        "reward_studies/_study_status.html",
        {"project": project, "study": study},
        is_finished=study.is_finished,
    )


@require_POST
@project_view(Role.RESEARCHER)
def study_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_reward_study(project, pk))
    return redirect("reward_studies:study-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def study_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    study = get_reward_study(project, pk)
    services.delete_reward_study(study=study, by=request.user)
    messages.success(request, f"{study.title} was deleted.")
    return redirect("reward_studies:study-list", project.slug)
