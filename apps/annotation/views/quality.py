"""Annotation quality of a campaign. For reviewers and researchers."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors
from apps.annotation.agreement import agreement_by_type, current_agreement_values
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.kept_figures import kept_figures
from apps.annotation.models import PREFERENCE_CHOICES, Campaign
from apps.annotation.quality import alpha_chart, measure_quality, read_alpha, speed_chart
from apps.annotation.reliability import estimate_reliability
from apps.annotation.suggestion_report import compare_suggestions
from apps.core.errors import DomainError

CATEGORY_WORDS = [choice.replace("_", " ") for choice in PREFERENCE_CHOICES]


@require_safe
@project_view(Role.REVIEWER)
def campaign_quality(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.get_campaign(project, pk)
    figures = kept_figures(campaign, quality_figures)
    disputed = figures["quality"].disputed
    context: dict[str, Any] = {
        "project": project,
        "campaign": campaign,
        "undecided": len(set(disputed) - selectors.campaign_adjudicated_items(campaign)),
    }
    return render(request, "annotation/campaign_quality.html", context | figures)


def quality_figures(campaign: Campaign) -> dict[str, Any]:
    """What the page shows of the annotations of a campaign."""
    answers = current_agreement_values(campaign.project, campaign.name)
    kinds = agreement_by_type(answers)
    quality = measure_quality(campaign, answers, kinds)
    for found in [part for each in kinds.values() for part in (each, *each["criteria"].values())]:
        found["reading"] = read_alpha(found)
    return {
        "kinds": [(FEEDBACK_TYPES[name], found) for name, found in kinds.items()],
        "quality": quality,
        # Zeros are no answers: a campaign without comparisons of two people has no such table.
        "confusion": list(zip(CATEGORY_WORDS, quality.confusion, strict=True))
        if any(map(any, quality.confusion))
        else [],
        "categories": CATEGORY_WORDS,
        "alphas": alpha_chart(kinds),
        "suggestions": compare_suggestions(campaign),
        "people": speed_chart(quality),
    }


@require_safe
@project_view(Role.REVIEWER)
def campaign_reliability(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Annotator reliability: a fragment of the quality page, or a page without JavaScript."""
    campaign = selectors.get_campaign(project, pk)
    context: dict[str, Any] = {"project": project, "campaign": campaign}
    try:
        context["people"] = kept_figures(campaign, estimate_reliability)
    except DomainError as error:
        context["error"] = error
    template = "_reliability.html" if request.htmx else "campaign_reliability.html"  # type: ignore[attr-defined]
    return render(request, f"annotation/{template}", context)
