"""An annotator's own campaigns and annotations."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project
from apps.annotation import own_progress, selectors, services
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Assignment
from apps.annotation.presentation import present_item

PAGE = 100


@require_safe
@project_view()
def campaign_list_own(request: ProjectRequest, project: Project) -> HttpResponse:
    """The annotator's campaigns: a fragment of the project overview, or a page without JavaScript."""
    annotator = services.annotator_for(project=project, user=request.user)
    context = {"project": project, "mine": own_progress.my_campaigns(project, annotator)}
    template = "_my_work.html" if request.htmx else "my_campaigns.html"  # type: ignore[attr-defined]
    return render(request, f"annotation/{template}", context)


@require_safe
@project_view()
def campaign_history(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.get_campaign(project, pk)
    annotator = services.annotator_for(project=project, user=request.user)
    lists = selectors.own_assignments(annotator, campaign)
    shown = request.GET.get("show", "")
    shown = shown if shown in lists else "submitted"
    context = {
        "tabs": [(name, rows.count()) for name, rows in lists.items()],
        "shown": shown,
        "project": project,
        "campaign": campaign,
        "mine": own_progress.my_campaign(campaign, annotator),
        "rows": [_row(assignment) for assignment in lists[shown][:PAGE]],
    }
    return render(request, "annotation/history.html", context)


def _row(assignment: Assignment) -> dict[str, object]:
    """The newest revision, with the letters as shown."""
    last = selectors.last_annotation(assignment)
    if last is None:
        return {"assignment": assignment}
    shown = present_item(assignment)
    kinds = [FEEDBACK_TYPES[name] for name in assignment.item.campaign.feedback_types]
    said = [(kind, words) for kind in kinds if (words := kind.summary(kind.load_records(last), shown))]
    return {"assignment": assignment, "said": said, "last": last}
