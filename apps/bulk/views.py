"""Pages of bulk jobs: what there is, a new one with its cost, progress and results."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.bulk import services
from apps.bulk.estimates import BulkEstimate, estimate_bulk_job
from apps.bulk.exports import result_lines
from apps.bulk.forms import BulkJobForm
from apps.bulk.models import BulkJob
from apps.bulk.selectors import BulkProgress, get_bulk_job, job_progress
from apps.bulk.tables import BulkJobTable
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_fragment
from apps.core.http.streaming import StreamedLines
from apps.trajectories.filters import known_conditions

_PAGE = 30
_LISTED = 20  # results and problems on the page of a job
_FIELDS = {
    "/filter": "filter",
    "/model": "model",
    "/judge": "judge",
    "/induction": "induction",
    "/work": "work",
    "/endpoint": "endpoint",
}  # by the pointer of an error
_CHANGES = {
    "pause": services.pause_bulk_job,
    "resume": services.resume_bulk_job,
    "retry": services.retry_problems,
    "cancel": services.cancel_bulk_job,
}


@require_safe
@project_view(Role.RESEARCHER)
def bulk_job_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = BulkJobTable(request, BulkJob.objects.filter(project=project), project=project)
    return table.response("bulk/bulk_job_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def bulk_job_create(request: ProjectRequest, project: Project) -> HttpResponse:
    """The button `estimate` says what the job will take; `create` starts it."""
    data = request.POST if request.method == "POST" else None
    form = BulkJobForm(data, project=project, initial=_initial_values(request))
    estimate: BulkEstimate | None = None
    if data is not None and form.is_valid():
        try:
            values = dict(form.cleaned_data)
            with_steps = values.pop("with_steps")
            if "create" in data:
                job = services.create_bulk_job(
                    project=project, **values, with_steps=with_steps, by=request.user
                )
                return redirect("bulk:bulk-job-detail", project.slug, job.pk)
            estimate = estimate_bulk_job(project=project, **values)
        except DomainError as error:
            form.add_error(_FIELDS.get(error.pointer or ""), error.message)
    context = {"project": project, "form": form, "estimate": estimate}
    return render(request, "bulk/bulk_job_create.html", context, status=400 if form.errors else 200)


def _initial_values(request: ProjectRequest) -> dict[str, Any]:
    """Of an address with the conditions of a filter, and the work."""
    filter = urlencode(known_conditions(request.GET), doseq=True)
    return {"filter": filter, "work": request.GET.get("work", BulkJob.Work.SCORE)}


@require_safe
@project_view(Role.RESEARCHER)
def bulk_job_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_bulk_job(project, pk)
    results = job.results.select_related("trajectory__task")
    context = _status_context(project, job) | {
        "results": results.filter(problem="").order_by(F("reward").desc(nulls_last=True), "trajectory")[
            :_LISTED
        ]
        if job.work != BulkJob.Work.EMBED
        else (),
        "problems": results.exclude(problem="").order_by("trajectory")[:_LISTED],
    }
    return render(request, "bulk/bulk_job_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def bulk_job_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    context = _status_context(project, get_bulk_job(project, pk))
    return job_fragment(
        request, "bulk/_bulk_job_status.html", context, is_finished=context["job"].is_finished
    )


@require_POST
@project_view(Role.RESEARCHER)
def bulk_job_change(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_bulk_job(project, pk)
    change = _CHANGES.get(request.POST.get("change", ""))
    if change is None:
        raise DomainError(f"Choose one of {', '.join(_CHANGES)}.")
    change(job=job, by=request.user)
    return redirect("bulk:bulk-job-detail", project.slug, job.pk)


@require_safe
@project_view(Role.RESEARCHER)
def bulk_job_results(request: ProjectRequest, project: Project, pk: int) -> StreamingHttpResponse:
    """JSON lines; `?problems=1` only those without a result."""
    job = get_bulk_job(project, pk)
    response = StreamedLines(result_lines(job, problems=bool(request.GET.get("problems"))))
    response["Content-Disposition"] = f'attachment; filename="bulk-job-{job.pk}.jsonl"'
    return response


def _status_context(project: Project, job: BulkJob) -> dict[str, Any]:
    progress: BulkProgress = job_progress(job)
    left = progress.seconds_left
    return {
        "project": project,
        "job": job,
        "progress": progress,
        "minutes_left": None if left is None else left / 60,
        "note": f"{progress.per_second:,.1f} items/s",
    }
