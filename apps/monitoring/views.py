"""Alerts of a project, and the monitors of its endpoints: measures, rules, emails."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.monitoring import services
from apps.monitoring.forms import CloseAlertForm, RulesForm
from apps.monitoring.mail import set_alert_emails
from apps.monitoring.measures import MEASURES
from apps.monitoring.models import Alert, Reading
from apps.monitoring.presenters import gold_chart, measures_chart, policy_summaries, rule_lines
from apps.monitoring.selectors import (
    alert_in,
    endpoint_rules,
    newest_samples,
    project_alerts,
    sample_scale,
)
from apps.monitoring.tables import AlertTable
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of, endpoints_of
from workers.errors import RewardError

SHOWN_ALERTS = 50
READINGS_DRAWN = 500


@require_safe
@project_view(Role.RESEARCHER)
def alert_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = AlertTable(request, Alert.objects.filter(endpoint__project=project), project=project)
    context = {
        "project": project,
        "endpoints": endpoints_of(project).annotate(
            broken=Count("alerts", filter=Q(alerts__closed_at=None), distinct=True)
        ),
    }
    return table.response("monitoring/alert_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def alert_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST closes it."""
    alert = alert_in(project, pk)
    form = CloseAlertForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.close_alert(alert=alert, note=form.cleaned_data["note"], by=request.user)
        except DomainError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, "Alert closed. It is not raised again for this revision and run.")
        return redirect("monitoring:alert-detail", project.slug, pk)
    context = {
        "project": project,
        "alert": alert,
        "form": form,
        "samples": alert.samples.order_by("-reward"),
        "two_sided": alert.measure in MEASURES and MEASURES[alert.measure].two_sided,
    }
    return render(request, "monitoring/alert_detail.html", context)


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
            messages.success(request, "Rules saved.")
            return redirect("monitoring:monitor-detail", project.slug, name)
    context = {
        "project": project,
        "endpoint": endpoint,
        "form": form,
        "sends_mail": bool(settings.MAIL),
        "gets_emails": request.user.monitors.filter(endpoint=endpoint).exists(),
        **_window_context(request, endpoint),
    }
    return render(request, "monitoring/monitor_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def monitor_mail(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """With `wanted`, the user gets an email for every alert; without it no longer."""
    endpoint, wanted = endpoint_of(project, name), "wanted" in request.POST
    try:
        set_alert_emails(endpoint=endpoint, user=request.user, wanted=wanted)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        text = (
            f"Alerts are sent to {request.user.email}."
            if wanted
            else "Alerts of this endpoint are no longer sent."
        )
        messages.success(request, text)
    return redirect("monitoring:monitor-detail", project.slug, name)


@require_safe
@project_view(Role.RESEARCHER)
def monitor_summary(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """A line on the endpoint's page."""
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
    """The card on the project home."""
    count = project_alerts(project).filter(closed_at=None).count()
    watched = endpoints_of(project).filter(sample_share__gt=0).count()
    context: dict[str, Any] = {"count": count, "unit": "open alert" if count == 1 else "open alerts"}
    context["text"] = f"{watched} endpoint{'s' * (watched != 1)} monitored"
    if Role(request.membership.role).includes(Role.RESEARCHER):
        context |= {"url": reverse("monitoring:alert-list", args=[project.slug]), "label": "View alerts"}
    return render(request, "components/_node.html", context)


def _window_context(request: ProjectRequest, endpoint: Endpoint) -> dict[str, Any]:
    readings = Reading.objects.filter(monitor__endpoint=endpoint)
    pairs = list(readings.order_by().values_list("version", "run").distinct())
    last = readings.order_by("-at").first()
    asked = (request.GET.get("version", ""), request.GET.get("run", ""))
    chosen = next((pair for pair in pairs if (str(pair[0]), pair[1]) == asked), None)
    if chosen is None and last is not None:
        chosen = (last.version, last.run)
    rules = endpoint_rules(endpoint)
    context: dict[str, Any] = {"pairs": sorted(pairs, reverse=True), "chosen": chosen}
    alerts = endpoint.alerts.order_by("-raised_at")
    if chosen is None:
        return context | {
            "lines": rule_lines(rules, None, ()),
            "policies": [],
            "alerts": alerts[:SHOWN_ALERTS],
        }
    version, run = chosen
    own = list(readings.filter(version=version, run=run).order_by("-at")[:READINGS_DRAWN])[::-1]
    policies = policy_summaries(sample_scale(endpoint, version).rows(newest_samples(endpoint, version, run)))
    broken = endpoint.alerts.filter(version=version, run=run, closed_at=None)
    return context | {
        "newest": own[-1] if own else None,
        "lines": rule_lines(rules, own[-1] if own else None, broken),
        "policies": policies,
        "alerts": alerts[:SHOWN_ALERTS],
        "measures_chart": measures_chart(own, rules),
        "gold_chart": gold_chart(policies),
    }
