"""What an annotator sees of her own work."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project
from apps.annotation import selectors, services
from apps.annotation.feedback_types import KINDS
from apps.annotation.models import Assignment

PAGE = 100


@require_safe
@project_view()
def my_work(request: ProjectRequest, project: Project) -> HttpResponse:
    """The annotator's home: a fragment of the project home, or a page of its own without a script."""
    annotator = services.annotator_for(project=project, user=request.user)
    context = {"project": project, "mine": selectors.my_campaigns(project, annotator)}
    template = "_my_work.html" if request.htmx else "my_campaigns.html"  # type: ignore[attr-defined]
    return render(request, f"annotation/{template}", context)


@require_safe
@project_view()
def history(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.campaign_in(project, pk)
    annotator = services.annotator_for(project=project, user=request.user)
    finished = selectors.history_of(annotator, campaign)[:PAGE]
    context = {
        "project": project,
        "campaign": campaign,
        "mine": selectors.my_campaign(campaign, annotator),
        "rows": [_row(assignment) for assignment in finished],
    }
    return render(request, "annotation/history.html", context)


def _row(assignment: Assignment) -> dict[str, object]:
    """The newest revision, in the words of the sides as shown."""
    last = selectors.last_annotation(assignment)
    if last is None:
        return {"assignment": assignment}
    shown = selectors.shown_of(assignment)
    kinds = [KINDS[name] for name in assignment.item.campaign.feedback_types]
    said = [(kind, words) for kind in kinds if (words := kind.summary(kind.rows_of(last), shown))]
    return {"assignment": assignment, "said": said, "last": last}
