"""Retraining cycles and follow-ups: fragments of the pages of alerts and monitors, and their forms."""

from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.monitoring.selectors import alert_in
from apps.retraining.cycle import confirm_stage, start_cycle, stop_cycle
from apps.retraining.follow_up import follow_up_alert
from apps.retraining.forms import FollowUpForm, RetrainingForm
from apps.retraining.models import RetrainingCycle
from apps.retraining.online import set_online_learning
from apps.retraining.presenters import cycle_durations, cycle_stages, seconds_to_served
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of
from workers.errors import RewardError

SHOWN_CYCLES, SHOWN_DURATIONS = 10, 5


@require_safe
@project_view(Role.RESEARCHER)
def alert_follow_ups(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A fragment of the alert's page."""
    alert = alert_in(project, pk)
    context = {
        "project": project,
        "alert": alert,
        "follow_up_form": FollowUpForm(project),
        "follow_ups": alert.follow_ups.select_related("campaign").order_by("-requested_at"),
        "has_samples": alert.samples.exists(),
    }
    return render(request, "retraining/_alert_follow_ups.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def alert_follow_up_create(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Ask annotators about the samples behind an alert."""
    alert, form = alert_in(project, pk), FollowUpForm(project, request.POST)
    back = redirect("monitoring:alert-detail", project.slug, pk)
    if not form.is_valid():
        messages.error(request, f"No annotations were requested. {_form_errors(form)}")
        return back
    try:
        follow_up = follow_up_alert(alert=alert, by=request.user, **form.cleaned_data)
    except (DomainError, RewardError) as error:
        messages.error(request, error.message)
    else:
        count = len(follow_up.items)
        comparisons = "1 comparison" if count == 1 else f"{count} comparisons"
        messages.success(request, f"Added {comparisons} to the front of {follow_up.campaign.name}.")
    return back


@require_safe
@project_view(Role.RESEARCHER)
def cycle_detail(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """A fragment of the monitor's page: the cycle in progress, polled, or the form of a new one; and past cycles."""
    endpoint = endpoint_of(project, name)
    return render(request, "retraining/_cycle.html", {"project": project, **_cycle_context(endpoint)})


@require_POST
@project_view(Role.RESEARCHER)
def cycle_start(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    endpoint = endpoint_of(project, name)
    form = RetrainingForm(endpoint, request.POST)
    back = redirect("monitoring:monitor-detail", project.slug, name)
    if not form.is_valid():
        messages.error(request, f"No retraining cycle was started. {_form_errors(form)}")
        return back
    options = dict(form.cleaned_data)
    count, every = options.pop("count"), options.pop("retrain_after")
    try:
        set_online_learning(endpoint=endpoint, every=every or 0, by=request.user)
        start_cycle(endpoint=endpoint, by=request.user, comparisons=count, **options)
    except (DomainError, RewardError) as error:
        messages.error(request, error.message)
    return back


@require_POST
@project_view(Role.RESEARCHER)
def cycle_continue(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """Confirm the current stage; with `stop`, stop the cycle instead."""
    cycle = endpoint_of(project, name).retraining_cycles.filter(ended_at=None).first()
    try:
        if cycle is None:
            raise NotFound(f"No retraining cycle of {name} is in progress.")
        if "stop" in request.POST:
            stop_cycle(cycle=cycle, by=request.user, reason=f"Stopped by {request.user}.")
        else:
            confirm_stage(cycle=cycle, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("monitoring:monitor-detail", project.slug, name)


@require_safe
@project_view(Role.RESEARCHER)
def cycle_times(request: ProjectRequest, project: Project) -> HttpResponse:
    """A fragment of the project home: the durations of past cycles, and the cycles in progress."""
    cycles = RetrainingCycle.objects.filter(endpoint__project=project).select_related("endpoint")
    promoted = cycles.filter(stage=RetrainingCycle.Stage.DONE).order_by("-ended_at")[:SHOWN_DURATIONS]
    context = {
        "project": project,
        "durations": cycle_durations(list(promoted)),
        "open": cycles.filter(ended_at=None),
    }
    return render(request, "retraining/_cycle_times.html", context)


def _cycle_context(endpoint: Endpoint) -> dict[str, Any]:
    rows = endpoint.retraining_cycles.select_related(
        "endpoint__project",
        "previous_model__project",
        "follow_up__campaign",
        "dataset_version__project",
        "training_run",
        "release",
    )
    cycles = list(rows.order_by("-started_at")[:SHOWN_CYCLES])
    current = next((cycle for cycle in cycles if cycle.is_open), None)
    return {
        "endpoint": endpoint,
        "cycle": current,
        "stages": cycle_stages(current) if current else [],
        "retraining_form": RetrainingForm(endpoint),
        "ended_cycles": [(cycle, seconds_to_served(cycle)) for cycle in cycles if not cycle.is_open],
    }


def _form_errors(form: Form) -> str:
    return "; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
