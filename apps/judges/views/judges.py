"""Judges, their trials and judgings, and how far they agree with people."""

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
from apps.judges.forms import JudgeForm, JudgingForm, TrialForm
from apps.judges.models import Judge, Judged, Judging
from apps.judges.selectors import (
    judge_in,
    judging_in,
    judgings_of,
    language_models_of,
    others_of,
    told,
    trial_runs,
)

LISTED = 50
_PAGE = 30


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def judge_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """POST makes one."""
    form = JudgeForm(request.POST if request.method == "POST" else None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            judge = services.add_judge(project=project, spec=form.spec, by=request.user)
        except DomainError as error:
            field = (error.pointer or "").removeprefix("/")
            form.add_error(field if field in form.fields else None, error.message)
        else:
            return redirect("judges:judge-detail", project.slug, judge.pk)
    context = {
        "project": project,
        "form": form,
        "judges": project.judges.select_related("language_model", "rubric"),
        "judgings": judgings_of(project).filter(campaign__isnull=False)[:LISTED],
        "has_rubrics": project.rubrics.exists(),
        "has_language_models": language_models_of(project).exists(),
        "may_add_models": Role(request.membership.role).includes(Role.OWNER),
    }
    return render(request, "judges/judge_list.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def judge_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    return _judge_page(request, project, judge_in(project, pk))


@require_POST
@project_view(Role.RESEARCHER)
def judge_remove(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge = judge_in(project, pk)
    services.remove_judge(judge=judge, by=request.user)
    messages.success(
        request, f"{judge.name} is removed. What it handed in stays, under {judge.annotator_name}."
    )
    return redirect("judges:judge-list", project.slug)


@require_POST
@project_view(Role.RESEARCHER)
def judge_try(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`runs`: numbers of those it is tried on."""
    judge = judge_in(project, pk)
    form = TrialForm(request.POST)
    if form.is_valid():
        try:
            runs = trial_runs(judge, form.cleaned_data["runs"])
            judging = services.try_judge(judge=judge, runs=runs, by=request.user)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("judges:judging-detail", project.slug, judging.pk)
    return _judge_page(request, project, judge, trial=form)


@require_POST
@project_view(Role.RESEARCHER)
def judge_run(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judge = judge_in(project, pk)
    form = JudgingForm(request.POST, project=project)
    if form.is_valid():
        try:
            judging = services.start_judging(judge=judge, by=request.user, **form.cleaned_data)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("judges:judging-detail", project.slug, judging.pk)
    return _judge_page(request, project, judge, run=form)


@require_safe
@project_view(Role.RESEARCHER)
def judging_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`against=N`: another judging of the same campaign that it is held against."""
    judging = judging_in(project, pk)
    held = agreement.held_against_people(judging)
    apart = agreement.disagreements_of(held)
    others = others_of(judging)[:LISTED]
    asked = request.GET.get("against", "")
    other = next((one for one in others if str(one.pk) == asked), None)
    done = judging.judged.filter(state=Judged.State.DONE).order_by("pk")
    context: dict[str, Any] = {
        "project": project,
        "judging": judging,
        "judge": judging.judge,
        "figures": agreement.figures_of(held) if held.both else [],
        "order": agreement.order_of(held),
        "spread": agreement.spread_of(held),
        "standings": standings_of(judging) if judging.is_finished else [],
        "disagreements": Paginator(apart, _PAGE).get_page(request.GET.get("apart")),
        "others": others,
        "other": other,
        "against": agreement.against(held, agreement.held_against_people(other)) if other else None,
        "answered": done.count(),
        "examples": told(judging, done[: LISTED if judging.is_trial else 5]),
        "failed": judging.judged.filter(state=Judged.State.FAILED).select_related(
            "trajectory__task", "other"
        )[:LISTED],
        "failed_count": judging.judged.filter(state=Judged.State.FAILED).count(),
        "waiting": judging.judged.filter(state=Judged.State.WAITING).count(),
    }
    return render(request, "judges/judging_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def judging_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part that changes while it is under way; the whole page once that is over."""
    judging = judging_in(project, pk)
    response = render(request, "judges/_judging_status.html", {"project": project, "judging": judging})
    if judging.is_finished:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@project_view(Role.RESEARCHER)
def judging_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(judging_in(project, pk))
    return redirect("judges:judging-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def judging_retry(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    services.retry_failed(judging=judging_in(project, pk))
    return redirect("judges:judging-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def judging_hand_in(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    judging: Judging = judging_in(project, pk)
    services.hand_in(judging=judging, by=request.user)
    messages.success(request, f"Its answers become judgements of {judging.judge.annotator_name}.")
    return redirect("judges:judging-detail", project.slug, pk)


def _judge_page(
    request: ProjectRequest,
    project: Project,
    judge: Judge,
    *,
    trial: TrialForm | None = None,
    run: JudgingForm | None = None,
) -> HttpResponse:
    wrong = bool((trial and trial.errors) or (run and run.errors))
    context = {
        "project": project,
        "judge": judge,
        "asks": judge.asks,
        "judgings": judgings_of(project, judge)[:LISTED],
        "trial": trial or TrialForm(),
        "run": run or JudgingForm(project=project),
        "has_campaigns": project.campaigns.exists(),
    }
    return render(request, "judges/judge_detail.html", context, status=422 if wrong else 200)
