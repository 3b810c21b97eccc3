"""The decisions of an endpoint's guard, their review by people, and precision by rule."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.rewards.guard_forms import GuardAnswerForm, GuardLogForm
from apps.rewards.guard_selectors import guard_decision, guard_decisions, next_for_review, rule_precisions
from apps.rewards.guard_services import answer_decision, keep_guard_log
from apps.rewards.guard_tables import GuardDecisionTable
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def guard_log(request: ProjectRequest, project: Project, name: str) -> HttpResponseBase:
    """POST saves the settings of the log."""
    endpoint = endpoint_of(project, name)
    form = GuardLogForm(endpoint, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            keep_guard_log(endpoint=endpoint, by=request.user, **form.settings())
        except DomainError as error:
            form.add_error((error.pointer or "/days").strip("/"), error.message)
        else:
            messages.success(request, "Settings saved.")
            return redirect("rewards:guard-log", project.slug, name)
    rules = rule_precisions(endpoint)
    table = GuardDecisionTable(
        request,
        guard_decisions(endpoint),
        project=project,
        endpoint=endpoint,
        rules=list(dict.fromkeys(row.rule for row in rules)),
    )
    context = {
        "project": project,
        "endpoint": endpoint,
        "form": form,
        "rules": rules,
        "waiting": sum(row.waiting for row in rules),
        "has_guard": _has_guard(endpoint),
    }
    return table.response("rewards/guard_log.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def guard_review(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """To the decision that has waited longest for a person."""
    found = next_for_review(endpoint_of(project, name))
    if found is None:
        messages.info(request, "No decision is waiting for a review.")
        return redirect("rewards:guard-log", project.slug, name)
    return redirect("rewards:guard-decision", project.slug, name, found.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def guard_decision_detail(request: ProjectRequest, project: Project, name: str, pk: int) -> HttpResponse:
    """POST answers whether it was right, and goes on to the next one that waits."""
    endpoint = endpoint_of(project, name)
    decision = guard_decision(endpoint, pk)
    form = GuardAnswerForm(
        request.POST if request.method == "POST" else None, initial={"note": decision.note}
    )
    if request.method == "POST" and form.is_valid():
        answer_decision(decision=decision, by=request.user, **form.answer_fields())
        messages.success(request, "Answer saved.")
        return redirect("rewards:guard-review", project.slug, name)
    context = {
        "project": project,
        "endpoint": endpoint,
        "decision": decision,
        "form": form,
        "has_next": next_for_review(endpoint) is not None,
    }
    return render(request, "rewards/guard_decision.html", context)


def _has_guard(endpoint: Endpoint) -> bool:
    """Whether the active revision has something to decide by."""
    spec = endpoint.active.spec if endpoint.active else {}
    return bool(spec.get("guard")) or any(
        part.get("type") == "policy_checks" for part in spec.get("components", ())
    )
