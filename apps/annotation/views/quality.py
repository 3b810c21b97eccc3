"""How good a campaign's judgements are, and the items behind each figure. For reviewers and researchers."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors
from apps.annotation.agreement import answers_of, of_kinds
from apps.annotation.feedback_types import KINDS
from apps.annotation.models import PREFERENCE_CHOICES
from apps.annotation.quality import drawn_alphas, drawn_people, quality_of
from apps.annotation.reliability import reliability_of
from apps.core.errors import DomainError

CATEGORY_WORDS = [one.replace("_", " ") for one in PREFERENCE_CHOICES]


@require_safe
@project_view(Role.REVIEWER)
def campaign_quality(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.campaign_in(project, pk)
    answers = answers_of(project, campaign.name)
    kinds = of_kinds(answers)
    quality = quality_of(campaign, answers, kinds)
    context: dict[str, Any] = {
        "project": project,
        "campaign": campaign,
        "kinds": [(KINDS[name], found) for name, found in kinds.items()],
        "quality": quality,
        "confusion": list(zip(CATEGORY_WORDS, quality.confusion, strict=True)),
        "categories": CATEGORY_WORDS,
        "alphas": drawn_alphas(kinds),
        "people": drawn_people(quality),
        "undecided": len(set(quality.disputed) - selectors.decided_of(quality.disputed)),
    }
    return render(request, "annotation/campaign_quality.html", context)


@require_safe
@project_view(Role.REVIEWER)
def campaign_reliability(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Who can be relied on: a fragment of the quality page, or a page of its own without a script."""
    campaign = selectors.campaign_in(project, pk)
    context: dict[str, Any] = {"project": project, "campaign": campaign}
    try:
        context["people"] = reliability_of(campaign)
    except DomainError as error:
        context["error"] = error
    template = "_reliability.html" if request.htmx else "campaign_reliability.html"  # type: ignore[attr-defined]
    return render(request, f"annotation/{template}", context)
