"""Pages of subgoals: the lists, a proposal, and one list that a person edits, accepts or rejects."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue
from apps.llm.page_context import connection_context
from apps.subgoals import services
from apps.subgoals.forms import ProposalForm, form_rows, typed_subgoals
from apps.subgoals.models import TaskSubgoals
from apps.subgoals.selectors import get_proposal, get_subgoals, newest_of_task, read_subgoals
from apps.subgoals.tables import SubgoalTable
from apps.trajectories.models import Task
from workers.subgoals.subgoal_lists import reached_counts


@require_safe
@project_view(Role.RESEARCHER)
def subgoals_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = SubgoalTable(request, TaskSubgoals.objects.filter(project=project), project=project)
    return table.response("subgoals/subgoals_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def proposal_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ProposalForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            proposal = services.start_proposal(
                project=project,
                llm_connection=form.cleaned_data["llm_connection"],
                options=form.options(),
                by=request.user,
            )
            return redirect("subgoals:proposal-detail", project.slug, proposal.pk)
        except DomainError as error:
            add_domain_error(form, error)
    context = {"project": project, "form": form} | connection_context(request, project)
    return render(request, "subgoals/proposal_create.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def proposal_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    proposal = get_proposal(project, pk)
    problems = proposal.result.get("problems", {})
    tasks = Task.objects.filter(project=project, pk__in=problems)
    context = {
        "project": project,
        "job": proposal,
        "lists": proposal.lists.select_related("task").order_by("pk"),
        "problems": [(task, problems[str(task.pk)]) for task in tasks],
    }
    return render(request, "subgoals/proposal_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def proposal_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the proposal ends; the whole page is reloaded then."""
    proposal = get_proposal(project, pk)
    return job_fragment(
        request,
        "subgoals/_proposal_status.html",
        {"project": project, "job": proposal},
        is_finished=proposal.is_finished,
    )


@require_POST
@project_view(Role.RESEARCHER)
def proposal_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_proposal(project, pk))
    return redirect("subgoals:proposal-detail", project.slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def subgoals_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST saves what was typed, and with `accept` accepts it."""
    own = get_subgoals(project, pk)
    rows, error = list[dict[str, Any]](own.subgoals), None
    if request.method == "POST":
        rows = typed_subgoals(request.POST)
        try:
            if rows != own.subgoals or own.state != TaskSubgoals.State.PROPOSED:
                own = services.edit_subgoals(own=own, subgoals=rows, by=request.user)
            if "accept" in request.POST:
                services.accept_subgoals(own=own, by=request.user)
            messages.success(request, "The subgoals were accepted." if "accept" in request.POST else "Saved.")
            return redirect("subgoals:subgoals-detail", project.slug, pk)
        except DomainError as found:
            error = found
    trajectories = newest_of_task(own.task)
    counts = [] if error else reached_counts(read_subgoals(own.subgoals), trajectories)
    context = {
        "project": project,
        "own": own,
        "rows": [
            {**row, "place": place, "reached": counts[place] if place < len(counts) else None}
            for place, row in enumerate(form_rows(rows))
        ],
        "looked_at": len(trajectories),
        "error": error,
    }
    return render(request, "subgoals/subgoals_detail.html", context, status=422 if error else 200)


@require_POST
@project_view(Role.RESEARCHER)
def subgoals_decide(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`accept` or `reject` the list as it is stored."""
    own = get_subgoals(project, pk)
    try:
        if "accept" in request.POST:
            services.accept_subgoals(own=own, by=request.user)
            messages.success(request, "The subgoals were accepted.")
        elif "reject" in request.POST:
            services.reject_subgoals(own=own, by=request.user)
            messages.success(request, "The subgoals were rejected.")
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("subgoals:subgoals-detail", project.slug, pk)
