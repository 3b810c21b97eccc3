"""The items behind the figures: what was said of each, who decides, what it is for. For reviewers and researchers."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors, services
from apps.annotation.gold import expected_of
from apps.annotation.models import Annotator, Assignment, Item
from apps.annotation.quality import disputed_in, undecided_in
from apps.annotation.views import page
from apps.core.errors import DomainError, NotFound

PAGE = 50
SAID_OF_PURPOSE = {
    "work": "It is work like any other again.",
    "gold": "It is gold: mixed into the work, and everybody's answer is held against the adjudication.",
    "practice": "It is practice: annotators do it first, and are told the answer.",
    "example": "It is an example: everybody finds it with the guidelines, answer and all.",
}


@require_safe
@project_view(Role.REVIEWER)
def item_list(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The judged items of a campaign; `by` (an annotator's name), `disputed` and `purpose` choose among them."""
    campaign = selectors.campaign_in(project, pk)
    by, is_disputed = request.GET.get("by", ""), "disputed" in request.GET
    purpose = request.GET.get("purpose", "")
    rows: Any = selectors.judged_items(campaign, by=by, purpose=purpose)
    if is_disputed:
        order = disputed_in(campaign)
        kept = set(rows.values_list("pk", flat=True)) if by else set(order)
        rows = [item for item in order if item in kept]
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    items = page.object_list
    if is_disputed:
        found = Item.objects.select_related("task").in_bulk(list(items))
        items = [found[item] for item in items]
    context = {
        "project": project,
        "campaign": campaign,
        "page": page,
        "items": items,
        "by": by,
        "is_disputed": is_disputed,
        "purpose": purpose,
        "decided": selectors.decided_of([item.pk for item in items]),
        "undecided": len(undecided_in(campaign)) if is_disputed else 0,
    }
    return render(request, "annotation/item_list.html", context)


@require_safe
@project_view(Role.REVIEWER)
def adjudicate_next(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next item in dispute that nobody has adjudicated; the list, when there is none."""
    campaign = selectors.campaign_in(project, pk)
    item = Item.objects.filter(pk__in=undecided_in(campaign)[:1]).first()
    if item is None:
        messages.success(request, "Nothing is left to adjudicate.")
        return redirect(f"{reverse('annotation:item-list', args=[project.slug, pk])}?disputed=1")
    return _to_adjudication(request, project, item)


@require_POST
@project_view(Role.REVIEWER)
def item_adjudicate(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    return _to_adjudication(request, project, selectors.item_in(project, pk))


def _to_adjudication(request: ProjectRequest, project: Project, item: Item) -> HttpResponse:
    annotator = services.annotator_for(project=project, user=request.user)
    assignment = services.adjudicate(item=item, annotator=annotator)
    return redirect("annotation:assignment-detail", project.slug, assignment.pk)


@require_POST
@project_view(Role.RESEARCHER)
def item_purpose(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Make an item gold, practice, an example, or work again."""
    item = selectors.item_in(project, pk)
    purpose = request.POST.get("purpose", "")
    if purpose not in Item.Purpose.values:
        raise DomainError(f"An item is {', '.join(Item.Purpose.values)}; not {purpose!r}.")
    services.set_purpose(
        item=item, purpose=purpose, explanation=request.POST.get("explanation", ""), by=request.user
    )
    messages.success(request, SAID_OF_PURPOSE[purpose])
    return redirect("annotation:item-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def item_give(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Keep a place on an item for one annotator."""
    item = selectors.item_in(project, pk)
    annotator = member_annotator(request, project)
    given = services.give_items(annotator=annotator, items=[item])
    words = (
        f"{annotator} gets it next."
        if given
        else f"{annotator} had it already, or it wants no more judgements."
    )
    messages.success(request, words)
    return redirect("annotation:item-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def assignment_take_back(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Free the place somebody holds."""
    rows = Assignment.objects.filter(item__campaign__project=project, is_adjudication=False)
    assignment = rows.select_related("annotator").filter(pk=pk).first()
    if assignment is None:
        raise NotFound(f"There is no assignment {pk} in this project.")
    services.take_back(assignment=assignment)
    messages.success(request, f"{assignment.annotator} does not hold it any more.")
    return redirect("annotation:item-detail", project.slug, assignment.item_id)


def member_annotator(request: ProjectRequest, project: Project) -> Annotator:
    """Whom a form names by `member`."""
    raw = request.POST.get("member", "")
    members = project.memberships.select_related("user")
    member = members.filter(pk=raw).first() if raw.isdecimal() and len(raw) < 19 else None
    if member is None:
        raise DomainError("Choose somebody of this project.", pointer="/member")
    return services.annotator_for(project=project, user=member.user)


@require_safe
@project_view()
def example_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """An example as it would be judged, with what is right filled in, and why."""
    item = selectors.item_in(project, pk)
    right = expected_of(item)
    if item.purpose != Item.Purpose.EXAMPLE or right is None:
        raise NotFound(f"Item {pk} is no example.")
    nobody = services.annotator_for(project=project, user=request.user)
    shown = Assignment(pk=0, item=item, annotator=nobody, state=Assignment.State.LOCKED)
    stored = selectors.stored(item)
    fields = selectors.said_in(right, item.campaign, stored)
    context = page.frame(item.campaign, nobody) | page.item(request, shown, fields=fields, everything=True)
    told = {
        "is_preview": True,
        "is_example": True,
        "right": selectors.in_words(right, stored),
        "previous": None,
    }
    return render(request, "annotation/work.html", context | told)


@require_safe
@project_view(Role.REVIEWER)
def item_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """All that was said of one item, by stored position: A is the first, whatever side it was shown on."""
    item = selectors.item_in(project, pk)
    shown = selectors.stored(item)
    context = {
        "project": project,
        "campaign": item.campaign,
        "item": item,
        "trajectories": list(zip("ABCDEFGH", shown.trajectories, strict=False)),
        "judgements": selectors.said_of(item, shown),
        "others": item.assignments.exclude(state__in=["submitted", "by_judge"]).select_related("annotator"),
        "is_decided": expected_of(item) is not None,
        "members": project.memberships.select_related("user").order_by("user__email"),
        "is_researcher": Role(request.membership.role).includes(Role.RESEARCHER),
    }
    return render(request, "annotation/item_detail.html", context)
