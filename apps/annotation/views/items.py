"""Item pages: annotations, adjudication and purpose. For reviewers and researchers."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors, services
from apps.annotation.gold import expected_annotation
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.presentation import present_stored_order
from apps.annotation.quality import disputed_items, undecided_items
from apps.annotation.tables import CampaignItemTable, DisputedItemTable, ItemTable
from apps.annotation.views import work_context
from apps.core.errors import DomainError, NotFound
from apps.core.number_parsing import whole_number
from apps.core.tables import MAX_TABLE_ROWS

PURPOSE_MESSAGES = {
    "work": "The item is a work item again.",
    "gold": "The item is a gold item: annotators are checked against its adjudication.",
    "practice": "The item is a practice item: annotators get it first and see the correct answer afterwards.",
    "example": "The item is an example: annotators see it with the guidelines.",
}


@require_safe
@project_view(Role.REVIEWER)
def item_list(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    """Annotated items of a campaign, filtered by `by` (an annotator's name), `disputed` and `purpose`; with `all`, all
    items with their status."""
    campaign = selectors.get_campaign(project, pk)
    by, is_disputed = request.GET.get("by", ""), "disputed" in request.GET
    purpose = request.GET.get("purpose", "")
    is_everything = "all" in request.GET
    table: ItemTable
    if is_everything:
        table = CampaignItemTable(request, Item.objects.filter(campaign=campaign), project=project)
    else:
        rows = selectors.annotated_items(campaign, by=by, purpose=purpose)
        if is_disputed:
            table = DisputedItemTable(
                request, _most_disputed(campaign, rows if by else None), project=project
            )
        else:
            table = ItemTable(request, rows, project=project)
    context = {
        "project": project,
        "campaign": campaign,
        "by": by,
        "is_disputed": is_disputed,
        "is_everything": is_everything,
        "purpose": purpose,
        "undecided": len(undecided_items(campaign)) if is_disputed else 0,
    }
    return table.response("annotation/item_list.html", context)


def _most_disputed(campaign: Campaign, rows: QuerySet[Item] | None) -> list[Item]:
    """rows: only these."""
    order = disputed_items(campaign)[:MAX_TABLE_ROWS]
    kept = set(order) if rows is None else set(rows.values_list("pk", flat=True))
    found = Item.objects.select_related("task").in_bulk([item for item in order if item in kept])
    return [found[item] for item in order if item in found]


@require_safe
@project_view(Role.REVIEWER)
def adjudication_next(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next disputed item without an adjudication; the list if there is none."""
    campaign = selectors.get_campaign(project, pk)
    item = Item.objects.filter(pk__in=undecided_items(campaign)[:1]).first()
    if item is None:
        messages.success(request, "No disputed items are left to adjudicate.")
        return redirect(f"{reverse('annotation:item-list', args=[project.slug, pk])}?disputed=1")
    return _to_adjudication(request, project, item)


@require_POST
@project_view(Role.REVIEWER)
def item_adjudicate(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    return _to_adjudication(request, project, selectors.get_item(project, pk))


def _to_adjudication(request: ProjectRequest, project: Project, item: Item) -> HttpResponse:
    annotator = services.annotator_for(project=project, user=request.user)
    assignment = services.start_adjudication(item=item, annotator=annotator)
    return redirect("annotation:assignment-detail", project.slug, assignment.pk)


@require_POST
@project_view(Role.RESEARCHER)
def item_purpose(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Make an item gold, practice, an example, or work again."""
    item = selectors.get_item(project, pk)
    purpose = request.POST.get("purpose", "")
    if purpose not in Item.Purpose.values:
        raise DomainError(f"Unknown purpose {purpose!r}; allowed are {', '.join(Item.Purpose.values)}.")
    services.set_item_purpose(
        item=item, purpose=purpose, explanation=request.POST.get("explanation", ""), by=request.user
    )
    messages.success(request, PURPOSE_MESSAGES[purpose])
    return redirect("annotation:item-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def item_assign(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Reserve an item for one annotator."""
    item = selectors.get_item(project, pk)
    annotator = posted_annotator(request, project)
    given = services.assign_items(annotator=annotator, items=[item], only="only" in request.POST)
    words = (
        f"Assigned the item to {annotator}."
        if given
        else f"The item was not assigned: {annotator} had it before, or it has all the annotations it needs."
    )
    messages.success(request, words)
    return redirect("annotation:item-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def assignment_release(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """End an assignment."""
    rows = Assignment.objects.filter(item__campaign__project=project, is_adjudication=False)
    assignment = rows.select_related("annotator").filter(pk=pk).first()
    if assignment is None:
        raise NotFound(f"There is no assignment {pk} in this project.")
    services.release_assignment(assignment=assignment)
    messages.success(request, f"Released the item from {assignment.annotator}.")
    return redirect("annotation:item-detail", project.slug, assignment.item_id)


def posted_annotator(request: ProjectRequest, project: Project) -> Annotator:
    """The annotator of the posted `member`."""
    number = whole_number(request.POST.get("member", ""))
    members = project.memberships.select_related("user")
    member = members.filter(pk=number or 0).first()
    if member is None:
        raise DomainError("Choose a member of this project.", pointer="/member")
    return services.annotator_for(project=project, user=member.user)


@require_safe
@project_view()
def example_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """An example on the annotation page, with the correct answer filled in."""
    item = selectors.get_item(project, pk)
    right = expected_annotation(item)
    if item.purpose != Item.Purpose.EXAMPLE or right is None:
        raise NotFound(f"Item {pk} is not an example.")
    viewer = services.annotator_for(project=project, user=request.user)
    shown = Assignment(pk=0, item=item, annotator=viewer, state=Assignment.State.LOCKED)
    stored = present_stored_order(item)
    fields = selectors.annotation_form_fields(right, item.campaign, stored)
    context = work_context.campaign_context(item.campaign, viewer) | work_context.item_context(
        request, shown, fields=fields, everything=True
    )
    example_context = {
        "is_preview": True,
        "is_example": True,
        "right": selectors.summarize_annotation(right, stored),
        "previous": None,
    }
    return render(request, "annotation/work.html", context | example_context)


@require_safe
@project_view(Role.REVIEWER)
def item_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """All annotations of one item, in stored order: A is the first, whichever side it was shown on."""
    item = selectors.get_item(project, pk)
    shown = present_stored_order(item)
    context = {
        "project": project,
        "campaign": item.campaign,
        "item": item,
        "trajectories": list(zip("ABCDEFGH", shown.trajectories, strict=False)),
        "judgements": selectors.summarize_annotations(item, shown),
        "others": item.assignments.exclude(state__in=["submitted", "by_judge"]).select_related("annotator"),
        "is_decided": expected_annotation(item) is not None,
        "members": project.memberships.select_related("user").order_by("user__email"),
        "is_researcher": Role(request.membership.role).includes(Role.RESEARCHER),
    }
    return render(request, "annotation/item_detail.html", context)
