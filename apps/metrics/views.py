"""Inductions: what they found, how good it is, and what people make of it."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Min
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.metrics import drawings, services
from apps.metrics.forms import EditForm, InduceForm, MergeForm, RubricForm, SplitForm
from apps.metrics.models import Induction, Metric
from apps.metrics.scoreboard import by_version, over_time, scoreboard
from apps.metrics.selectors import (
    comments_of,
    counting,
    definition_of,
    examples_of,
    failed_of,
    gone_since,
    induction_in,
    inductions_of,
    is_under_way,
    metric_in,
    standing,
    told,
)

LISTED = 50
UNCOVERED = 30


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def induction_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """POST begins one."""
    form = InduceForm(request.POST if request.method == "POST" else None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            induction = services.induce(
                project=project,
                campaign=form.cleaned_data["campaign"],
                llm_connection=form.cleaned_data["llm_connection"],
                seed=form.cleaned_data["seed"] or 0,
                by=request.user,
            )
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            return redirect("metrics:induction-detail", project.slug, induction.pk)
    context = {
        "project": project,
        "form": form,
        "inductions": inductions_of(project)[:LISTED],
        "comments": comments_of(project, None).count(),
        "is_under_way": is_under_way(project),
        "has_llm_connections": project.llm_connections.exists(),
        "may_add_models": Role(request.membership.role).includes(Role.OWNER),
    }
    return render(request, "metrics/induction_list.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def induction_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    induction = induction_in(project, pk)
    return render(request, "metrics/induction_detail.html", _told(project, induction))


@require_safe
@project_view(Role.RESEARCHER)
def induction_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part that changes while it is under way; the whole page once that is over."""
    induction = induction_in(project, pk)
    context = {"project": project, "induction": induction}
    response = render(request, "metrics/_induction_status.html", context)
    if induction.is_finished:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@project_view(Role.RESEARCHER)
def induction_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(induction_in(project, pk))
    return redirect("metrics:induction-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def induction_judge(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Judge every trajectory again, those that came since too."""
    induction = induction_in(project, pk)
    return _done(request, project, induction, lambda: services.judge_again(induction))


@require_POST
@project_view(Role.RESEARCHER)
def induction_rubric(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    induction = induction_in(project, pk)
    form = RubricForm(request.POST)
    if not form.is_valid():
        return _refused(request, project, induction, form)
    try:
        rubric = services.make_rubric(induction=induction, name=form.cleaned_data["name"], by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("metrics:induction-detail", project.slug, pk)
    return redirect("rubrics:rubric-detail", project.slug, rubric.pk)


@require_safe
@project_view(Role.RESEARCHER)
def scoreboard_page(request: ProjectRequest, project: Project) -> HttpResponse:
    """`metric=NAME`: which is drawn over time; the one judged most often without it."""
    board = scoreboard(project)
    asked = request.GET.get("metric", "")
    metric = asked if asked in board.metrics else next(iter(board.metrics), "")
    context = {
        "project": project,
        "board": board,
        "metric": metric,
        "by_version": by_version(board),
        "over_time": over_time(board, metric),
    }
    return render(request, "metrics/scoreboard.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def metric_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = metric_in(project, pk)
    points = metric.aspects.values("feedback", "sign").annotate(count=Count("pk"), first=Min("pk"))
    aspects = metric.aspects.select_related("trajectory__task").order_by("-sign", "example", "number")
    verdicts = metric.verdicts.exclude(sign=0).select_related("trajectory__task", "because")
    context = {
        "project": project,
        "induction": metric.induction,
        "metric": metric,
        "definition": definition_of(metric),
        "good": examples_of(metric, 1),
        "bad": examples_of(metric, -1),
        "points": points.order_by("-sign", "-count", "feedback"),
        "aspects": aspects[:LISTED],
        "aspect_count": metric.aspects.count(),
        "violated": verdicts.filter(sign=-1).order_by("value")[:LISTED],
        "violated_count": verdicts.filter(sign=-1).count(),
        "kept": verdicts.filter(sign=1).order_by("-value")[:LISTED],
        "kept_count": verdicts.filter(sign=1).count(),
        "edit": EditForm(initial={"name": metric.name, "definition": metric.definition}),
        "merge": MergeForm(metric=metric),
        "counts": counting(project).filter(pk=metric.pk).exists(),
        "explore": {judged: urlencode({"fact": metric.name, "judged": judged}) for judged in ("good", "bad")},
        "stands": metric.state in (Metric.State.PROPOSED, Metric.State.ACCEPTED),
        "has_others": standing(metric.induction).exclude(pk=metric.pk).exists(),
    }
    return render(request, "metrics/metric_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def metric_edit(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = metric_in(project, pk)
    form = EditForm(request.POST)
    if not form.is_valid():
        return _refused(request, project, metric, form)
    return _done(
        request, project, metric, lambda: services.edit(metric=metric, by=request.user, **form.cleaned_data)
    )


@require_POST
@project_view(Role.RESEARCHER)
def metric_decide(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`what=accept|reject|restore`."""
    metric = metric_in(project, pk)
    what = {"accept": services.accept, "reject": services.reject, "restore": services.restore}
    chosen: Callable[..., Any] | None = what.get(request.POST.get("what", ""))

    def decide() -> None:
        if chosen is None:
            raise DomainError("Accept it, reject it, or take a rejection back.", pointer="/what")
        chosen(metric=metric, by=request.user)

    back = metric.induction if "list" in request.POST else metric
    return _done(request, project, back, decide)


@require_POST
@project_view(Role.RESEARCHER)
def metric_merge(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = metric_in(project, pk)
    form = MergeForm(request.POST, metric=metric)
    if not form.is_valid():
        return _refused(request, project, metric, form)
    into = form.cleaned_data["into"]
    return _done(request, project, into, lambda: services.merge(metric=metric, into=into, by=request.user))


@require_POST
@project_view(Role.RESEARCHER)
def metric_split(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = metric_in(project, pk)
    form = SplitForm(request.POST, metric=metric)
    if not form.is_valid():
        return _refused(request, project, metric, form)
    return _done(
        request, project, metric, lambda: services.split(metric=metric, by=request.user, **form.cleaned_data)
    )


def _done(
    request: ProjectRequest, project: Project, back: Induction | Metric, act: Callable[[], object]
) -> HttpResponse:
    try:
        act()
    except DomainError as error:
        messages.error(request, error.message)
    return _back(project, back)


def _refused(
    request: ProjectRequest, project: Project, back: Induction | Metric, form: forms.Form
) -> HttpResponse:
    for name, errors in form.errors.items():
        messages.error(request, f"{form.fields[name].label or name.capitalize()}: {errors[0]}")
    return _back(project, back)


def _back(project: Project, to: Induction | Metric) -> HttpResponse:
    name = "induction-detail" if isinstance(to, Induction) else "metric-detail"
    return redirect(f"metrics:{name}", project.slug, to.pk)


def _told(project: Project, induction: Induction) -> dict[str, Any]:
    metrics = list(told(induction.metrics.exclude(state=Metric.State.MERGED)))
    for metric in metrics:
        metric.told = definition_of(metric)  # type: ignore[attr-defined]
    uncovered = induction.aspects.filter(covered=False).select_related("metric", "trajectory__task")
    return {
        "project": project,
        "induction": induction,
        "result": induction.result,
        "metrics": metrics,
        "accepted": sum(metric.state == Metric.State.ACCEPTED for metric in metrics),
        "gone": gone_since(induction) if metrics else [],
        "uncovered": uncovered.order_by("number")[:UNCOVERED],
        "uncovered_count": uncovered.count(),
        "failed": failed_of(induction)[:LISTED],
        "curve": drawings.curve(induction) if metrics else None,
        "map": drawings.map_of(induction) if metrics else None,
        "rubric_form": RubricForm(),
        "can_judge": bool(metrics) and induction.is_finished,
        "is_failed": induction.state in (JobState.FAILED, JobState.CANCELLED),
    }
