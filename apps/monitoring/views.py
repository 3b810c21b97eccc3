"""How the endpoints of a project do: alerts, what was measured, and the rules."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.monitoring import asking, services, turning
from apps.monitoring.forms import AskForm, CloseForm, RulesForm, TurnForm
from apps.monitoring.mail import tell_by_mail
from apps.monitoring.models import Reading, Turn
from apps.monitoring.selectors import alert_in, alerts_of, rules_of, scale_of, window_of
from apps.monitoring.shown import (
    drawn_gold,
    drawn_measures,
    lines_of,
    policies_of,
    seconds_to_served,
    steps_of,
    times_of,
)
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of, endpoints_of
from workers.errors import RewardError

SHOWN, SHOWN_TURNS, SHOWN_TIMES = 50, 10, 5
READINGS_DRAWN = 500


@require_safe
@project_view(Role.RESEARCHER)
def alert_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """Open ones first."""
    alerts = alerts_of(project)
    context = {
        "project": project,
        "open": alerts.filter(closed_at=None).order_by("-raised_at")[:SHOWN],
        "closed": alerts.exclude(closed_at=None).order_by("-closed_at")[:SHOWN],
        "endpoints": endpoints_of(project).annotate(
            broken=Count("alerts", filter=Q(alerts__closed_at=None), distinct=True)
        ),
    }
    return render(request, "monitoring/alert_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def alert_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST closes it."""
    alert = alert_in(project, pk)
    form = CloseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.close_alert(alert=alert, note=form.cleaned_data["note"], by=request.user)
        except DomainError as error:
            messages.error(request, error.message)
        else:
            messages.success(
                request, "The alert is closed; the same is not told again of this revision and run."
            )
        return redirect("monitoring:alert-detail", project.slug, pk)
    context = {
        "project": project,
        "alert": alert,
        "form": form,
        "samples": alert.samples.order_by("-reward"),
        "ask_form": AskForm(project),
        "follow_ups": alert.follow_ups.select_related("campaign").order_by("-asked_at"),
    }
    return render(request, "monitoring/alert_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def alert_ask(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """What is behind an alert goes to people."""
    alert, form = alert_in(project, pk), AskForm(project, request.POST)
    back = redirect("monitoring:alert-detail", project.slug, pk)
    if not form.is_valid():
        messages.error(request, f"People were not asked. {_wrong(form)}")
        return back
    try:
        asked = asking.ask_about(alert=alert, by=request.user, **form.cleaned_data)
    except (DomainError, RewardError) as error:
        messages.error(request, error.message)
    else:
        count = len(asked.items)
        waiting = "1 comparison waits" if count == 1 else f"{count} comparisons wait"
        messages.success(request, f"{waiting} first in {asked.campaign.name}.")
    return back


@require_safe
@project_view(Role.RESEARCHER)
def turn_state(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """How the turn goes, polled while there is one, and how the last ones ended."""
    endpoint = endpoint_of(project, name)
    return render(request, "monitoring/_turn.html", {"project": project, **_turns(endpoint)})


@require_POST
@project_view(Role.RESEARCHER)
def turn_begin(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    endpoint = endpoint_of(project, name)
    form = TurnForm(endpoint, request.POST)
    back = redirect("monitoring:monitor-detail", project.slug, name)
    if not form.is_valid():
        messages.error(request, f"Nothing was begun. {_wrong(form)}")
        return back
    asked = dict(form.cleaned_data)
    count, every = asked.pop("count"), asked.pop("online_every")
    try:
        services.learn_by_itself(endpoint=endpoint, every=every or 0, by=request.user)
        turning.begin_turn(endpoint=endpoint, by=request.user, asks=count, **asked)
    except (DomainError, RewardError) as error:
        messages.error(request, error.message)
    return back


@require_POST
@project_view(Role.RESEARCHER)
def turn_go_on(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`stop` stops it instead."""
    turn = endpoint_of(project, name).turns.filter(ended_at=None).first()
    try:
        if turn is None:
            raise NotFound(f"No turn of {name} is on its way.")
        if "stop" in request.POST:
            turning.stop_turn(turn=turn, by=request.user, reason=f"By {request.user}.")
        else:
            turning.go_on(turn=turn, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("monitoring:monitor-detail", project.slug, name)


def _turns(endpoint: Endpoint) -> dict[str, Any]:
    rows = endpoint.turns.select_related(
        "endpoint__project",
        "against__project",
        "follow_up__campaign",
        "dataset_version__project",
        "run",
        "trial",
    )
    turns = list(rows.order_by("-started_at")[:SHOWN_TURNS])
    current = next((one for one in turns if one.is_open), None)
    return {
        "endpoint": endpoint,
        "turn": current,
        "steps": steps_of(current) if current else [],
        "turn_form": TurnForm(endpoint),
        "ended_turns": [(one, seconds_to_served(one)) for one in turns if not one.is_open],
    }


def _wrong(form: Form) -> str:
    return "; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def monitor_detail(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`?version=&run=` shows another window than the newest. POST saves the rules."""
    endpoint = endpoint_of(project, name)
    form = RulesForm(endpoint, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.save_rules(endpoint=endpoint, rules=form.cleaned_data["rules"], by=request.user)
        except RewardError as error:
            form.add_error("rules", error.message)
        else:
            messages.success(request, "The rules are saved.")
            return redirect("monitoring:monitor-detail", project.slug, name)
    context = {
        "project": project,
        "endpoint": endpoint,
        "form": form,
        "sends_mail": bool(settings.MAIL),
        "is_told": request.user.monitors.filter(endpoint=endpoint).exists(),
        **_turns(endpoint),
        **_watched(request, endpoint),
    }
    return render(request, "monitoring/monitor_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def monitor_mail(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`wanted` has whoever asks told of alerts by mail; without it no longer."""
    endpoint, wanted = endpoint_of(project, name), "wanted" in request.POST
    try:
        tell_by_mail(endpoint=endpoint, user=request.user, wanted=wanted)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        to = f"Alerts go to {request.user.email}." if wanted else "No more mail of this endpoint."
        messages.success(request, to)
    return redirect("monitoring:monitor-detail", project.slug, name)


@require_safe
@project_view(Role.RESEARCHER)
def monitor_summary(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """A line for the endpoint's own page."""
    endpoint = endpoint_of(project, name)
    context = {
        "project": project,
        "endpoint": endpoint,
        "alerts": endpoint.alerts.filter(closed_at=None).order_by("-raised_at")[:3],
        "count": endpoint.alerts.filter(closed_at=None).count(),
        "monitor": getattr(endpoint, "monitor", None),
    }
    return render(request, "monitoring/_monitor_summary.html", context)


@require_safe
@project_view(shows_models=True)
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    """The station of the project home."""
    count = alerts_of(project).filter(closed_at=None).count()
    watched = endpoints_of(project).filter(sample_share__gt=0).count()
    context: dict[str, Any] = {"count": count, "unit": "open alert" if count == 1 else "open alerts"}
    context["text"] = f"{watched} endpoint{'s' * (watched != 1)} watched"
    if Role(request.membership.role).includes(Role.RESEARCHER):
        context |= {"url": reverse("monitoring:alert-list", args=[project.slug]), "label": "See them"}
    return render(request, "components/_node.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def turn_times(request: ProjectRequest, project: Project) -> HttpResponse:
    """Under the circle of the project home: how long it took from a judgement to a served reward, and what is on its
    way."""
    turns = Turn.objects.filter(endpoint__project=project).select_related("endpoint")
    done = turns.filter(stage=Turn.Stage.DONE).order_by("-ended_at")[:SHOWN_TIMES]
    context = {"project": project, "times": times_of(list(done)), "open": turns.filter(ended_at=None)}
    return render(request, "monitoring/_turn_times.html", context)


def _watched(request: ProjectRequest, endpoint: Endpoint) -> dict[str, Any]:
    readings = Reading.objects.filter(monitor__endpoint=endpoint)
    pairs = list(readings.order_by().values_list("version", "run").distinct())
    last = readings.order_by("-at").first()
    asked = (request.GET.get("version", ""), request.GET.get("run", ""))
    chosen = next((pair for pair in pairs if (str(pair[0]), pair[1]) == asked), None)
    if chosen is None and last is not None:
        chosen = (last.version, last.run)
    rules = rules_of(endpoint)
    context: dict[str, Any] = {"pairs": sorted(pairs, reverse=True), "chosen": chosen}
    alerts = endpoint.alerts.order_by("-raised_at")
    if chosen is None:
        return context | {"lines": lines_of(rules, None, ()), "policies": [], "alerts": alerts[:SHOWN]}
    version, run = chosen
    own = list(readings.filter(version=version, run=run).order_by("-at")[:READINGS_DRAWN])[::-1]
    policies = policies_of(scale_of(endpoint, version).rows(window_of(endpoint, version, run)))
    broken = endpoint.alerts.filter(version=version, run=run, closed_at=None)
    return context | {
        "newest": own[-1] if own else None,
        "lines": lines_of(rules, own[-1] if own else None, broken),
        "policies": policies,
        "alerts": alerts[:SHOWN],
        "drawing": drawn_measures(own, rules),
        "gold": drawn_gold(policies),
    }
