"""Pages of inductions and their metrics."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Min
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation.feedback.page_comments import CAMPAIGN, copy_page_comments, count_page_comments
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.llm.page_context import connection_context
from apps.metrics import services
from apps.metrics.charts import comment_map, metric_count_chart
from apps.metrics.forms import (
    InductionForm,
    InductionRubricForm,
    MetricEditForm,
    MetricMergeForm,
    MetricSplitForm,
)
from apps.metrics.models import Induction, Metric
from apps.metrics.scoreboard import by_version, over_time, scoreboard
from apps.metrics.selectors import (
    active_metrics,
    degenerate_reason,
    describe_failures,
    dropped_since_previous,
    get_induction,
    get_metric,
    has_running_induction,
    list_comments,
    metric_definition,
    metric_definitions,
    metric_degenerate_reason,
    metric_examples,
    project_metrics,
    with_counts,
)
from apps.metrics.tables import InductionTable

LISTED = 50
UNCOVERED_LISTED = 30


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def induction_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """POST starts an induction."""
    form = InductionForm(request.POST if request.method == "POST" else None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            induction = services.start_induction(
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
        "comments": list_comments(project, None).count(),
        "page_comments": count_page_comments(project),
        "is_running": has_running_induction(project),
    } | connection_context(request, project)
    table = InductionTable(request, Induction.objects.filter(project=project), project=project)
    return table.response("metrics/induction_list.html", context, status=422 if form.errors else 200)


@require_POST
@project_view(Role.RESEARCHER)
def page_comments_copy(request: ProjectRequest, project: Project) -> HttpResponse:
    """Comments of trajectory pages become feedback, which inductions read."""
    result = copy_page_comments(project=project, by=request.user)
    added = f"{result.created:,} comment{'' if result.created == 1 else 's'} added"
    messages.success(
        request, f"{added} to the campaign {CAMPAIGN}; {result.duplicates:,} were there already."
    )
    return redirect("metrics:induction-list", project.slug)


@require_safe
@project_view(Role.RESEARCHER)
def induction_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    induction = get_induction(project, pk)
    return render(request, "metrics/induction_detail.html", _induction_context(project, induction))


@require_safe
@project_view(Role.RESEARCHER)
def induction_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls while the induction is not finished; the page is reloaded once it is."""
    induction = get_induction(project, pk)
    context = {"project": project, "induction": induction}
    return job_fragment(request, "metrics/_induction_status.html", context, is_finished=induction.is_finished)


@require_POST
@project_view(Role.RESEARCHER)
def induction_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_induction(project, pk))
    return redirect("metrics:induction-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def induction_judge(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Judge every trajectory again, including those imported since."""
    induction = get_induction(project, pk)
    return _run_action(request, project, induction, lambda: services.judge_again(induction))


@require_POST
@project_view(Role.RESEARCHER)
def induction_rubric(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    induction = get_induction(project, pk)
    form = InductionRubricForm(request.POST)
    if not form.is_valid():
        return _form_refused(request, project, induction, form)
    try:
        rubric = services.create_rubric(induction=induction, name=form.cleaned_data["name"], by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("metrics:induction-detail", project.slug, pk)
    return redirect("rubrics:rubric-detail", project.slug, rubric.pk)


@require_safe
@project_view(Role.RESEARCHER)
def scoreboard_page(request: ProjectRequest, project: Project) -> HttpResponse:
    """`metric=NAME`: the metric of the chart over time (default: the one with the most verdicts)."""
    board = scoreboard(project)
    requested = request.GET.get("metric", "")
    metric = requested if requested in board.metrics else next(iter(board.metrics), "")
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
    metric = get_metric(project, pk)
    points = metric.aspects.values("feedback", "sign").annotate(count=Count("pk"), first=Min("pk"))
    aspects = metric.aspects.select_related("trajectory__task").order_by("-sign", "example", "number")
    verdicts = metric.verdicts.exclude(sign=0).select_related("trajectory__task", "because")
    context = {
        "project": project,
        "induction": metric.induction,
        "metric": metric,
        "definition": metric_definition(metric),
        "good": metric_examples(metric, 1),
        "bad": metric_examples(metric, -1),
        "points": points.order_by("-sign", "-count", "feedback"),
        "aspects": aspects[:LISTED],
        "aspect_count": metric.aspects.count(),
        "violated": verdicts.filter(sign=-1).order_by("value")[:LISTED],
        "violated_count": verdicts.filter(sign=-1).count(),
        "kept": verdicts.filter(sign=1).order_by("-value")[:LISTED],
        "kept_count": verdicts.filter(sign=1).count(),
        "edit": MetricEditForm(initial={"name": metric.name, "definition": metric.definition}),
        "merge": MetricMergeForm(metric=metric),
        "is_in_use": project_metrics(project).filter(pk=metric.pk).exists(),
        "explore": {judged: urlencode({"fact": metric.name, "judged": judged}) for judged in ("good", "bad")},
        "degenerate_reason": metric_degenerate_reason(metric),
        "is_active": metric.state in (Metric.State.PROPOSED, Metric.State.ACCEPTED),
        "has_others": active_metrics(metric.induction).exclude(pk=metric.pk).exists(),
    }
    return render(request, "metrics/metric_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def metric_edit(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = get_metric(project, pk)
    form = MetricEditForm(request.POST)
    if not form.is_valid():
        return _form_refused(request, project, metric, form)
    return _run_action(
        request,
        project,
        metric,
        lambda: services.edit_metric(metric=metric, by=request.user, **form.cleaned_data),
    )


@require_POST
@project_view(Role.RESEARCHER)
def metric_decide(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`what=accept|reject|restore`."""
    metric = get_metric(project, pk)
    decisions = {
        "accept": services.accept_metric,
        "reject": services.reject_metric,
        "restore": services.restore_metric,
    }
    chosen: Callable[..., Any] | None = decisions.get(request.POST.get("what", ""))

    def decide() -> None:
        if chosen is None:
            raise DomainError("Choose accept, reject or restore.", pointer="/what")
        chosen(metric=metric, by=request.user)

    back = metric.induction if "list" in request.POST else metric
    return _run_action(request, project, back, decide)


@require_POST
@project_view(Role.RESEARCHER)
def metric_merge(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = get_metric(project, pk)
    form = MetricMergeForm(request.POST, metric=metric)
    if not form.is_valid():
        return _form_refused(request, project, metric, form)
    into = form.cleaned_data["into"]
    return _run_action(
        request, project, into, lambda: services.merge_metrics(metric=metric, into=into, by=request.user)
    )


@require_POST
@project_view(Role.RESEARCHER)
def metric_split(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    metric = get_metric(project, pk)
    form = MetricSplitForm(request.POST, metric=metric)
    if not form.is_valid():
        return _form_refused(request, project, metric, form)
    return _run_action(
        request,
        project,
        metric,
        lambda: services.split_metric(metric=metric, by=request.user, **form.cleaned_data),
    )


def _run_action(
    request: ProjectRequest, project: Project, back: Induction | Metric, act: Callable[[], object]
) -> HttpResponse:
    try:
        act()
    except DomainError as error:
        messages.error(request, error.message)
    return _redirect_back(project, back)


def _form_refused(
    request: ProjectRequest, project: Project, back: Induction | Metric, form: forms.Form
) -> HttpResponse:
    for name, errors in form.errors.items():
        messages.error(request, f"{form.fields[name].label or name.capitalize()}: {errors[0]}")
    return _redirect_back(project, back)


def _redirect_back(project: Project, to: Induction | Metric) -> HttpResponse:
    name = "induction-detail" if isinstance(to, Induction) else "metric-detail"
    return redirect(f"metrics:{name}", project.slug, to.pk)


def _induction_context(project: Project, induction: Induction) -> dict[str, Any]:
    metrics = list(with_counts(induction.metrics.exclude(state=Metric.State.MERGED)))
    definitions = metric_definitions(metrics)
    for metric in metrics:
        metric.shown_definition = definitions[metric.pk]  # type: ignore[attr-defined]
        counts = {name: getattr(metric, name) for name in ("kept", "violated", "judged")}
        metric.degenerate_reason = degenerate_reason(**counts)  # type: ignore[attr-defined]
    uncovered = induction.aspects.filter(covered=False).select_related("metric", "trajectory__task")
    return {
        "project": project,
        "induction": induction,
        "result": induction.result,
        "metrics": metrics,
        "accepted": sum(metric.state == Metric.State.ACCEPTED for metric in metrics),
        "dropped": dropped_since_previous(induction) if metrics else [],
        "uncovered": uncovered.order_by("number")[:UNCOVERED_LISTED],
        "uncovered_count": uncovered.count(),
        "failed": describe_failures(induction)[:LISTED],
        "curve": metric_count_chart(induction) if metrics else None,
        "map": comment_map(induction) if metrics else None,
        "rubric_form": InductionRubricForm(),
        "can_judge": bool(metrics) and induction.is_finished,
        "is_failed": induction.state in (JobState.FAILED, JobState.CANCELLED),
    }
