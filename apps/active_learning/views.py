"""What a campaign hands out next and how many annotations it needs, for researchers; why an item, for everyone."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view, sees_models
from apps.accounts.models import Project, Role
from apps.active_learning import services
from apps.active_learning.forms import PlanForm
from apps.active_learning.models import SelectionPlan, SelectionReason
from apps.active_learning.reasons import curve_chart, describe_needed_labels, describe_reason
from apps.active_learning.selectors import count_annotations_since, newest_selection, next_items
from apps.annotation.models import Assignment, Campaign
from apps.annotation.selectors import get_campaign, get_item
from apps.core.errors import DomainError, NotFound
from apps.core.forms import add_domain_error

SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def plan_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = get_campaign(project, pk)
    plan = _plan(campaign)
    form = PlanForm(request.POST or None, campaign=campaign, plan=plan)
    if request.method == "POST" and form.is_valid():
        try:
            services.save_plan(campaign=campaign, by=request.user, **form.cleaned_data)
        except DomainError as error:
            add_domain_error(form, error)
        else:
            messages.success(request, "Saved. Items are being ranked again.")
            return redirect("active_learning:plan-detail", project.slug, pk)
    context = {"project": project, "campaign": campaign, "form": form} | _status(plan)
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "active_learning/plan_detail.html", context, status=status)


@require_safe
@project_view(Role.RESEARCHER)
def plan_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """What changes as judgements come: a fragment."""
    campaign = get_campaign(project, pk)
    context = {"project": project, "campaign": campaign} | _status(_plan(campaign))
    return render(request, "active_learning/_plan_status.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def plan_now(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    plan = _plan(get_campaign(project, pk))
    if plan is None:
        raise NotFound("This campaign does not use active learning yet. Save a strategy first.")
    started = services.select_next(plan=plan)
    messages.success(
        request, "Items are being ranked again." if started else "Items are being ranked already."
    )
    return redirect("active_learning:plan-detail", project.slug, pk)


@require_safe
@project_view(Role.RESEARCHER)
def plan_summary(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A line for the campaign's own page."""
    campaign = get_campaign(project, pk)
    context = {"project": project, "campaign": campaign} | _status(_plan(campaign))
    return render(request, "active_learning/_plan_summary.html", context)


@require_safe
@project_view()
def item_reason(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Why an item was chosen. An annotator sees it only for items assigned to them."""
    item = get_item(project, pk)
    own = Assignment.objects.filter(item=item, annotator__user=request.user)
    if not Role(request.membership.role).includes(Role.REVIEWER) and not own.exists():
        raise NotFound(f"There is no item {pk} of yours in this project.")
    reason = SelectionReason.objects.filter(item=item).select_related("selection").first()
    said = None if reason is None else describe_reason(reason)
    context = {"said": said, "sees_models": sees_models(request.membership)}
    return render(request, "active_learning/_item_reason.html", context)


def _plan(campaign: Campaign) -> SelectionPlan | None:
    if campaign.ordering != Campaign.Ordering.ACTIVE:
        return None
    return (
        SelectionPlan.objects.filter(campaign=campaign)
        .select_related("campaign__project", "endpoint")
        .first()
    )


def _status(plan: SelectionPlan | None) -> dict[str, Any]:
    if plan is None:
        return {"plan": None}
    last, current = newest_selection(plan), plan.selections.order_by("-pk").first()
    result = last.result if last else {}
    curve = result.get("curve")
    return {
        "plan": plan,
        "last": last,
        "current": current,
        "is_choosing": current is not None and not current.is_finished,
        "failed": current if current is not None and current.error else None,
        "annotations_since": count_annotations_since(plan, last) if last else 0,
        "chosen": [(reason.item, describe_reason(reason)) for reason in next_items(plan, SHOWN)],
        "comparisons": result.get("comparisons", 0),
        "curve": curve,
        "drawing": curve_chart(curve) if curve else None,
        "needed": describe_needed_labels(curve, result["comparisons"]) if curve and curve["wanted"] else "",
    }
