"""Pages of hindsight tasks: the texts, a proposal, and one text that a person edits, accepts or rejects."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_state_fragment
from apps.core.jobs import job_queue
from apps.hindsight import services
from apps.hindsight.forms import HindsightProposalForm
from apps.hindsight.kind import HINDSIGHT
from apps.hindsight.models import HindsightProposal, HindsightTask
from apps.hindsight.selectors import get_hindsight_task
from apps.hindsight.tables import HindsightTable
from apps.proposals.pages import create_page, decide
from apps.proposals.services import get_job
from apps.trajectories.models import Trajectory
from workers.hindsight.relabelled import LONGEST_TASK


@require_safe
@project_view(Role.RESEARCHER)
def hindsight_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = HindsightTable(request, HindsightTask.objects.filter(project=project), project=project)
    return table.response("hindsight/task_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def hindsight_propose(request: ProjectRequest, project: Project) -> HttpResponse:
    form = HindsightProposalForm(request.POST or None, project=project)

    def start() -> HindsightProposal:
        connection = form.cleaned_data["llm_connection"]
        return services.start_hindsight_proposal(
            project=project, llm_connection=connection, options=form.options(), by=request.user
        )

    template = "hindsight/proposal_create.html"
    return create_page(request, project, form, start, template=template, detail="hindsight:proposal-detail")


@require_safe
@project_view(Role.RESEARCHER)
def hindsight_proposal(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    proposal = get_job(HINDSIGHT, project, pk)
    problems = proposal.result.get("problems", {})
    without = Trajectory.objects.filter(project=project, pk__in=problems).select_related("task")
    context = {
        "project": project,
        "job": proposal,
        "proposed": proposal.hindsight_tasks.select_related("trajectory__task").order_by("pk"),
        "problems": [(each, problems[str(each.pk)]) for each in without.order_by("-pk")],
    }
    return render(request, "hindsight/proposal_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def hindsight_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the proposal ends; the whole page is reloaded then."""
    return job_state_fragment(request, project, get_job(HINDSIGHT, project, pk), "hindsight:proposal")


@require_POST
@project_view(Role.RESEARCHER)
def hindsight_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_job(HINDSIGHT, project, pk))
    return redirect("hindsight:proposal-detail", project.slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def hindsight_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST saves what was typed, and with `accept` accepts it."""
    own = get_hindsight_task(project, pk)
    text, error = own.text, None
    if request.method == "POST":
        text = request.POST.get("text", "").replace("\r\n", "\n").strip()
        try:
            if text != own.text or own.state != HindsightTask.State.PROPOSED:
                own = services.edit_hindsight_task(own=own, text=text, by=request.user)
            if "accept" in request.POST:
                services.accept_hindsight_task(own=own, by=request.user)
            messages.success(request, "The task was accepted." if "accept" in request.POST else "Saved.")
            return redirect("hindsight:task-detail", project.slug, pk)
        except DomainError as found:
            error = found
    context = {
        "project": project,
        "own": own,
        "text": text,
        "longest": LONGEST_TASK,
        "error": error,
    }
    return render(request, "hindsight/task_detail.html", context, status=422 if error else 200)


@require_POST
@project_view(Role.RESEARCHER)
def hindsight_decide(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`accept` or `reject` the text as it is stored."""
    own = get_hindsight_task(project, pk)
    decide(
        request,
        accept=lambda: services.accept_hindsight_task(own=own, by=request.user),
        reject=lambda: services.reject_hindsight_task(own=own, by=request.user),
        what="The task was",
    )
    return redirect("hindsight:task-detail", project.slug, pk)
