"""Judges, their trials and judge runs, and how far they agree with people."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.judges import agreement, services
from apps.judges.evaluation import standings_of
from apps.judges.forms import JudgeForm, JudgeRunForm, TrialForm
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.selectors import comparable_runs, get_judge, get_judge_run, list_judge_runs, told, trial_runs
from apps.llm.selectors import list_llm_connections

LISTED = 50
_PAGE = 30


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def judge_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """POST makes one."""
    form = JudgeForm(request.POST if request.method == "POST" else None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            judge = services.create_judge(project=project, spec=form.spec, by=request.user)
        except DomainError as error:
            field = (error.pointer or "").removeprefix("/")
            form.add_error(field if field in form.fields else None, error.message)
        else:
            return redirect("judges:judge-detail", project.slug, judge.pk)
    context = {
        "project": project,
        "form": form,
        "judges": project.judges.select_related("llm_connection", "rubric"),
        "judge_runs": list_judge_runs(project).filter(campaign__isnull=False)[:LISTED],
        "has_rubrics": project.rubrics.exists(),
        "has_llm_connections": list_llm_connections(project).exists(),
        "may_add_models": Role(request.membership.role).includes(Role.OWNER),
    }
    return render(request, "judges/judge_list.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def judge_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    return _judge_page(request, project, get_judge(project, pk))


@require_POST
@project_view(Role.RESEARCHER)
def judge_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge = get_judge(project, pk)
    services.delete_judge(judge=judge, by=request.user)
    messages.success(
        request, f"{judge.name} is removed. What it handed in stays, under {judge.annotator_name}."
    )
    return redirect("judges:judge-list", project.slug)


@require_POST
@project_view(Role.RESEARCHER)
def judge_test(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`runs`: numbers of those it is tried on."""
    judge = get_judge(project, pk)
    form = TrialForm(request.POST)
    if form.is_valid():
        try:
            runs = trial_runs(judge, form.cleaned_data["runs"])
            judge_run = services.try_judge(judge=judge, runs=runs, by=request.user)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("judges:judge-run-detail", project.slug, judge_run.pk)
    return _judge_page(request, project, judge, trial=form)


@require_POST
@project_view(Role.RESEARCHER)
def judge_run_start(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge = get_judge(project, pk)
    form = JudgeRunForm(request.POST, project=project)
    if form.is_valid():
        try:
            judge_run = services.start_judge_run(judge=judge, by=request.user, **form.cleaned_data)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("judges:judge-run-detail", project.slug, judge_run.pk)
    return _judge_page(request, project, judge, run=form)


@require_safe
@project_view(Role.RESEARCHER)
def judge_run_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`against=N`: another judge run of the same campaign that it is held against."""
    judge_run = get_judge_run(project, pk)
    held = agreement.held_against_people(judge_run)
    apart = agreement.disagreements_of(held)
    others = comparable_runs(judge_run)[:LISTED]
    asked = request.GET.get("against", "")
    other = next((one for one in others if str(one.pk) == asked), None)
    done = judge_run.results.filter(state=JudgeResult.State.DONE).order_by("pk")
    context: dict[str, Any] = {
        "project": project,
        "judge_run": judge_run,
        "judge": judge_run.judge,
        "figures": agreement.figures_of(held) if held.both else [],
        "order": agreement.order_of(held),
        "spread": agreement.spread_of(held),
        "standings": standings_of(judge_run) if judge_run.is_finished else [],
        "disagreements": Paginator(apart, _PAGE).get_page(request.GET.get("apart")),
        "others": others,
        "other": other,
        "against": agreement.against(held, agreement.held_against_people(other)) if other else None,
        "answered": done.count(),
        "examples": told(judge_run, done[: LISTED if judge_run.is_test else 5]),
        "failed": judge_run.results.filter(state=JudgeResult.State.FAILED).select_related(
            "trajectory__task", "other_trajectory"
        )[:LISTED],
        "failed_count": judge_run.results.filter(state=JudgeResult.State.FAILED).count(),
        "waiting": judge_run.results.filter(state=JudgeResult.State.WAITING).count(),
    }
    return render(request, "judges/judge_run_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def judge_run_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part that changes while it is under way; the whole page once that is over."""
    judge_run = get_judge_run(project, pk)
    response = render(request, "judges/_judge_run_status.html", {"project": project, "judge_run": judge_run})
    if judge_run.is_finished:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@project_view(Role.RESEARCHER)
def judge_run_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_judge_run(project, pk))
    return redirect("judges:judge-run-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def judge_run_retry(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    services.retry_failed(judge_run=get_judge_run(project, pk))
    return redirect("judges:judge-run-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def judge_run_save(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge_run: JudgeRun = get_judge_run(project, pk)
    services.save_as_annotations(judge_run=judge_run, by=request.user)
    messages.success(request, f"Its answers become judgements of {judge_run.judge.annotator_name}.")
    return redirect("judges:judge-run-detail", project.slug, pk)


def _judge_page(
    request: ProjectRequest,
    project: Project,
    judge: Judge,
    *,
    trial: TrialForm | None = None,
    run: JudgeRunForm | None = None,
) -> HttpResponse:
    wrong = bool((trial and trial.errors) or (run and run.errors))
    context = {
        "project": project,
        "judge": judge,
        "asks": judge.criteria,
        "judge_runs": list_judge_runs(project, judge)[:LISTED],
        "trial": trial or TrialForm(),
        "run": run or JudgeRunForm(project=project),
        "has_campaigns": project.campaigns.exists(),
    }
    return render(request, "judges/judge_detail.html", context, status=422 if wrong else 200)
