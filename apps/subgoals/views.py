"""Pages of subgoals: the lists, a proposal, and one list that a person edits, accepts or rejects."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_state_fragment
from apps.core.jobs import job_queue
from apps.proposals.pages import create_page, decide
from apps.proposals.services import get_job
from apps.subgoals import services
from apps.subgoals.forms import ProposalForm, form_rows, typed_subgoals
from apps.subgoals.kind import SUBGOALS
from apps.subgoals.models import SubgoalProposal, TaskSubgoals
from apps.subgoals.selectors import get_subgoals, newest_of_task, read_subgoals
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

    def start() -> SubgoalProposal:
        connection = form.cleaned_data["llm_connection"]
        return services.start_proposal(
            project=project, llm_connection=connection, options=form.options(), by=request.user
        )

    template = "subgoals/proposal_create.html"
    return create_page(request, project, form, start, template=template, detail="subgoals:proposal-detail")


@require_safe
@project_view(Role.RESEARCHER)
def proposal_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    proposal = get_job(SUBGOALS, project, pk)
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
    return job_state_fragment(request, project, get_job(SUBGOALS, project, pk), "subgoals:proposal")


@require_POST
@project_view(Role.RESEARCHER)
def proposal_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_job(SUBGOALS, project, pk))
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
    decide(
        request,
        accept=lambda: services.accept_subgoals(own=own, by=request.user),
        reject=lambda: services.reject_subgoals(own=own, by=request.user),
        what="The subgoals were",
    )
    return redirect("subgoals:subgoals-detail", project.slug, pk)
