"""Pages of reward programs: those there are, a new version, one version with its differences, and its dry runs."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.core.http.job_pages import job_state_fragment
from apps.core.jobs import job_queue
from apps.core.number_parsing import whole_number
from apps.llm.page_context import connection_context
from apps.reward_programs import services
from apps.reward_programs.code_difference import changed_lines
from apps.reward_programs.forms import DraftForm, DryRunForm, RewardProgramForm
from apps.reward_programs.models import RewardProgramVersion
from apps.reward_programs.selectors import (
    get_reward_program,
    get_reward_program_job,
    list_reward_programs,
)
from apps.reward_programs.tables import RewardProgramTable


@require_safe
@project_view(Role.RESEARCHER)
def program_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    rows = RewardProgramVersion.objects.filter(project=project, deleted_at=None)
    table = RewardProgramTable(request, rows, project=project)
    return table.response("reward_programs/program_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def program_create(request: ProjectRequest, project: Project) -> HttpResponse:
    """`?from=`: the version whose code the form begins with."""
    form = RewardProgramForm(request.POST or None, initial=_initial(request, project))
    if request.method == "POST" and form.is_valid():
        try:
            program = services.create_reward_program(project=project, by=request.user, **form.cleaned_data)
            return redirect("reward_programs:program-detail", project.slug, program.pk)
        except DomainError as error:
            add_domain_error(form, error)
    context = {"project": project, "form": form}
    return render(request, "reward_programs/program_create.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def program_draft(request: ProjectRequest, project: Project) -> HttpResponse:
    """`?from=`: the version that is revised."""
    initial = {"name": _initial(request, project).get("name", ""), "revises": request.GET.get("from")}
    form = DraftForm(request.POST or None, project=project, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            job = services.start_draft(
                project=project,
                name=form.cleaned_data["name"],
                llm_connection=form.cleaned_data["llm_connection"],
                options=form.options(),
                by=request.user,
            )
            return redirect("reward_programs:job-detail", project.slug, job.pk)
        except DomainError as error:
            add_domain_error(form, error)
    context = {"project": project, "form": form} | connection_context(request, project)
    return render(request, "reward_programs/program_draft.html", context, status=422 if form.errors else 200)


def _initial(request: HttpRequest, project: Project) -> dict[str, str]:
    begun = whole_number(request.GET.get("from", ""))
    program = list_reward_programs(project).filter(pk=begun).first() if begun is not None else None
    return {} if program is None else {"name": program.name, "code": program.code}


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def program_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`?against=`: another version of the program, by default the one before. POST starts a dry run."""
    program = get_reward_program(project, pk)
    form = DryRunForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            job = services.start_dry_run(program=program, options=form.options(), by=request.user)
            return redirect("reward_programs:job-detail", project.slug, job.pk)
        except DomainError as error:
            add_domain_error(form, error, field="filter" if error.pointer is None else None)
    others = list_reward_programs(project).filter(name=program.name).exclude(pk=pk).order_by("-version")
    other = _compared(program, list(others), request.GET.get("against", ""))
    context = {
        "project": project,
        "program": program,
        "others": others,
        "other": other,
        "difference": [] if other is None else changed_lines(other.code, program.code),
        "form": form,
        "jobs": program.jobs.order_by("-pk")[:20],
    }
    return render(request, "reward_programs/program_detail.html", context, status=422 if form.errors else 200)


def _compared(
    program: RewardProgramVersion, others: list[RewardProgramVersion], chosen: str
) -> RewardProgramVersion | None:
    before = (other for other in others if other.version < program.version)
    return next((other for other in others if str(other.pk) == chosen), next(before, None))


@require_POST
@project_view(Role.RESEARCHER)
def program_accept(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    program = services.accept_reward_program(program=get_reward_program(project, pk), by=request.user)
    messages.success(request, f"{program.short_name} was accepted.")
    return redirect("reward_programs:program-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def program_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    program = get_reward_program(project, pk)
    try:
        services.delete_reward_program(program=program, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("reward_programs:program-detail", project.slug, pk)
    messages.success(request, f"{program.short_name} was deleted.")
    return redirect("reward_programs:program-list", project.slug)


@require_safe
@project_view(Role.RESEARCHER)
def job_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_reward_program_job(project, pk)
    return render(request, "reward_programs/job_detail.html", {"project": project, "job": job})


@require_safe
@project_view(Role.RESEARCHER)
def job_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the job ends; the whole page is reloaded then."""
    return job_state_fragment(request, project, get_reward_program_job(project, pk), "reward_programs:job")


@require_POST
@project_view(Role.RESEARCHER)
def job_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_reward_program_job(project, pk))
    return redirect("reward_programs:job-detail", project.slug, pk)
