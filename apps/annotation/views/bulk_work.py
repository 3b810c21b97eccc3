"""Ratings of many items as a grid of cards: one key each."""

import uuid
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project
from apps.annotation import own_progress, selectors, services
from apps.annotation.feedback_types.rating import RATING
from apps.annotation.models import Assignment, Campaign
from apps.annotation.presentation import present_item
from apps.core.errors import Conflict
from apps.trajectories.step_cards import step_cards


@require_safe
@never_cache
@project_view()
def campaign_bulk(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A batch of items with their last step and the rating; what needs more has its own page."""
    campaign = selectors.get_campaign(project, pk)
    annotator = services.annotator_for(project=project, user=request.user)
    if not campaign.is_bulk:
        raise Conflict("Only campaigns that ask for nothing but a rating of one trajectory have a grid.")
    try:
        assignments = services.assign_batch(campaign=campaign, annotator=annotator)
    except Conflict:  # the page for single items says why, or has the practice items
        return redirect("annotation:campaign-work", project.slug, pk)
    rows = Assignment.objects.select_related("item__task", "item__campaign").in_bulk(
        [assignment.pk for assignment in assignments]
    )
    context = {
        "project": project,
        "campaign": campaign,
        "mine": own_progress.my_campaign(campaign, annotator),
        "cards": [bulk_card(rows[assignment.pk]) for assignment in assignments],
    }
    return render(request, "annotation/bulk_work.html", context)


def bulk_card(assignment: Assignment) -> dict[str, Any]:
    """An item as a card: its last step and its question. An item of several trajectories has no question here."""
    shown = present_item(assignment)
    trajectory = shown.on_side(0)
    return {
        "assignment": assignment,
        "task": assignment.item.task,
        "trajectory": trajectory,
        "last_steps": step_cards(trajectory.pk, max(0, trajectory.step_count - 1), trajectory.step_count),
        "questions": RATING.questions({}, shown) if len(shown.trajectories) == 1 else [],
        "idempotency_key": uuid.uuid4(),
    }


def finished_card(request: ProjectRequest, campaign: Campaign, assignment: Assignment) -> HttpResponse:
    """The card of an item that was just rated, or the next batch without JavaScript."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("annotation:campaign-bulk", campaign.project.slug, campaign.pk)
    last = selectors.last_annotation(assignment)
    words = selectors.summarize_annotation(last, present_item(assignment)) if last else []
    context = {
        "project": campaign.project,
        "card": {"assignment": assignment, "task": assignment.item.task},
        "answer": ", ".join(text for _, text in words),
    }
    return render(request, "annotation/_bulk_card.html", context)
