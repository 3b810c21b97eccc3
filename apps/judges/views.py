"""Judges, their test runs and judge runs, and their agreement with annotators."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue
from apps.judges import services
from apps.judges.agent_scores import agent_scores
from apps.judges.agreement import agreement_with_humans, criterion_agreements, largest_disagreements
from apps.judges.consistency import compare_judge_runs, mean_sample_spread, order_consistency
from apps.judges.forms import JudgeForm, JudgeRunForm, JudgeTestForm
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.selectors import (
    choose_test_trajectories,
    comparable_runs,
    describe_results,
    get_judge,
    get_judge_run,
    list_judge_runs,
)
from apps.judges.tables import JudgeRunTable, JudgeTable
from apps.llm.page_context import connection_context

LISTED = 50
_PAGE_SIZE = 30
_EXAMPLES = 5  # results shown of a run over a campaign


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def judge_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """POST creates a judge."""
    form = JudgeForm(request.POST if request.method == "POST" else None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            judge = services.create_judge(project=project, spec=form.spec, by=request.user)
        except DomainError as error:
            add_domain_error(form, error)
        else:
            return redirect("judges:judge-detail", project.slug, judge.pk)
    table = JudgeTable(request, project.judges.all(), project=project)
    runs = JudgeRunTable(
        request, JudgeRun.objects.filter(judge__project=project, campaign__isnull=False), project=project
    )
    if runs.is_file_asked:
        return runs.response("judges/judge_list.html")
    context = {
        "project": project,
        "form": form,
        "judge_runs": runs,
        "has_rubrics": project.rubrics.exists(),
    } | connection_context(request, project)
    return table.response("judges/judge_list.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def judge_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    return _render_judge(request, project, get_judge(project, pk))


@require_POST
@project_view(Role.RESEARCHER)
def judge_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge = get_judge(project, pk)
    services.delete_judge(judge=judge, by=request.user)
    messages.success(
        request, f"{judge.name} was deleted. Annotations saved as {judge.annotator_name} are kept."
    )
    return redirect("judges:judge-list", project.slug)


@require_POST
@project_view(Role.RESEARCHER)
def judge_test(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`trajectories`: IDs to test the judge on."""
    judge = get_judge(project, pk)
    form = JudgeTestForm(request.POST)
    if form.is_valid():
        try:
            trajectories = choose_test_trajectories(judge, form.cleaned_data["trajectories"])
            judge_run = services.start_test_run(judge=judge, trajectories=trajectories, by=request.user)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("judges:judge-run-detail", project.slug, judge_run.pk)
    return _render_judge(request, project, judge, test_form=form)


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
    return _render_judge(request, project, judge, run_form=form)


@require_safe
@project_view(Role.RESEARCHER)
def judge_run_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`against=N`: another run over the same campaign to compare with."""
    judge_run = get_judge_run(project, pk)
    report = agreement_with_humans(judge_run)
    others = comparable_runs(judge_run)[:LISTED]
    requested = request.GET.get("against", "")
    other = next((run for run in others if str(run.pk) == requested), None)
    done = judge_run.results.filter(state=JudgeResult.State.DONE).order_by("pk")
    failed = judge_run.results.filter(state=JudgeResult.State.FAILED)
    disagreements = Paginator(largest_disagreements(report), _PAGE_SIZE)
    context: dict[str, Any] = {
        "project": project,
        "judge_run": judge_run,
        "judge": judge_run.judge,
        "agreements": criterion_agreements(report) if report.common_units else [],
        "order": order_consistency(report),
        "spread": mean_sample_spread(report),
        "agent_scores": agent_scores(judge_run) if judge_run.is_finished else [],
        "disagreements": disagreements.get_page(request.GET.get("apart")),
        "others": others,
        "other": other,
        "comparison": compare_judge_runs(report, agreement_with_humans(other)) if other else None,
        "answered": done.count(),
        "examples": describe_results(judge_run, done[: LISTED if judge_run.is_test else _EXAMPLES]),
        "failed": failed.select_related("trajectory__task", "other_trajectory")[:LISTED],
        "failed_count": failed.count(),
        "waiting": judge_run.results.filter(state=JudgeResult.State.WAITING).count(),
    }
    return render(request, "judges/judge_run_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def judge_run_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls while the run is not finished; the whole page is reloaded once it is."""
    judge_run = get_judge_run(project, pk)
    return job_fragment(
        request,
        "judges/_judge_run_status.html",
        {"project": project, "judge_run": judge_run},
        is_finished=judge_run.is_finished,
    )


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
    judge_run = get_judge_run(project, pk)
    services.save_as_annotations(judge_run=judge_run, by=request.user)
    messages.success(
        request, f"The results are being saved as annotations by {judge_run.judge.annotator_name}."
    )
    return redirect("judges:judge-run-detail", project.slug, pk)


def _render_judge(
    request: ProjectRequest,
    project: Project,
    judge: Judge,
    *,
    test_form: JudgeTestForm | None = None,
    run_form: JudgeRunForm | None = None,
) -> HttpResponse:
    is_invalid = bool((test_form and test_form.errors) or (run_form and run_form.errors))
    context = {
        "project": project,
        "judge": judge,
        "criteria": judge.criteria,
        "judge_runs": list_judge_runs(project, judge)[:LISTED],
        "test_form": test_form or JudgeTestForm(),
        "run_form": run_form or JudgeRunForm(project=project),
        "has_campaigns": project.campaigns.exists(),
    }
    return render(request, "judges/judge_detail.html", context, status=422 if is_invalid else 200)
