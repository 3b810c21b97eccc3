"""The work page: one item, one decision. Every step of it is a plain form; htmx and work.js make it quick."""

import uuid

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import trigger_client_event

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors, services
from apps.annotation.feedback_types import KINDS, Shown
from apps.annotation.gold import expected_of, is_as_expected
from apps.annotation.models import Annotator, Assignment, Campaign, FeedbackRecord, Item
from apps.annotation.views import page
from apps.core.errors import Conflict, DomainError, NotFound

MORE = {"comment": "comment=1#comments", "all": "all=1"}
LEAVE = {"skip": services.skip_assignment, "flag": services.flag_assignment}


@require_safe
@never_cache  # the way back leads to what is held now, not to a form that was sent
@project_view()
def work(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next item of a campaign, or the one held."""
    annotator = services.annotator_for(project=project, user=request.user)
    return _next(request, selectors.campaign_in(project, pk), annotator)


def _next(request: ProjectRequest, campaign: Campaign, annotator: Annotator) -> HttpResponse:
    try:
        assignment = services.assign_next_item(campaign=campaign, annotator=annotator)
    except Conflict:  # it is closed or over, or she is paused; the page says which
        assignment = None
    context = page.frame(campaign, annotator)
    if assignment is not None:
        context |= page.item(request, selectors.assignment_of(annotator, assignment.pk))
    template = "annotation/_work.html" if request.htmx else "annotation/work.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_safe
@never_cache
@project_view()
def assignment_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """One's own item again: to go on, or to change what was said."""
    assignment = _mine(request, project, pk)
    context = page.around(assignment) | page.item(request, assignment)
    return render(request, "annotation/work.html", context | {"is_again": True})


@require_safe
@project_view()
def answer(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """After practice: what was said, what is right, and why."""
    assignment = _mine(request, project, pk)
    last = selectors.last_annotation(assignment)
    right = expected_of(assignment.item)
    if assignment.item.purpose != Item.Purpose.PRACTICE or last is None or right is None:
        # It is practice no more, or not done.
        return redirect("annotation:assignment-detail", project.slug, pk)
    shown = selectors.shown_of(assignment)
    context = {
        "assignment": assignment,
        "said": selectors.in_words(last, shown),
        "right": selectors.in_words(right, shown),
        "is_right": is_as_expected(last, right),
    }
    return render(request, "annotation/practice_answer.html", page.around(assignment) | context)


@require_safe
@project_view()
def rows(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """More rows of the comparison, brought as they are scrolled to."""
    assignment = _mine(request, project, pk)
    context = page.more(assignment, request.GET.get("start", ""))
    return render(request, "annotation/_rows.html", context | {"project": project, "assignment": assignment})


@require_POST
@project_view()
def submit(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    assignment = _mine(request, project, pk)
    shown, fields = selectors.shown_of(assignment), page.posted(request.POST, assignment.item.campaign)
    if (more := request.POST.get("action", "")) in MORE:  # without a script: the page again, with more on it
        _save_draft(request, assignment, fields)
        return redirect(f"{reverse('annotation:assignment-detail', args=[project.slug, pk])}?{MORE[more]}")
    try:
        annotation = services.submit_annotation(
            assignment=assignment,
            idempotency_key=_key(request),
            judgements=_judgements(assignment, fields, shown),
            by=request.user,
            active_seconds=page.seconds(request.POST),
        )
    except DomainError as error:
        if request.htmx:  # type: ignore[attr-defined]
            raise
        context = page.around(assignment) | page.item(request, assignment, fields=fields) | {"error": error}
        return render(request, "annotation/work.html", context, status=error.status)
    if annotation.is_surplus:
        return _after(request, assignment, "Kept aside: the item had enough judgements by now.", is_news=True)
    return _after(request, assignment, "Saved.")


def _judgements(assignment: Assignment, fields: dict[str, str], shown: Shown) -> list[FeedbackRecord]:
    return [
        row for name in assignment.item.campaign.feedback_types for row in KINDS[name].parse(fields, shown)
    ]


def _after(
    request: ProjectRequest, assignment: Assignment, words: str, *, is_news: bool = False
) -> HttpResponse:
    """On to the next item. After an edit the page is another one, so the browser goes there itself.

    is_news: words that are said even where the next item shows that all went as expected.
    """
    campaign = assignment.item.campaign
    if assignment.is_adjudication or (
        assignment.item.purpose == Item.Purpose.PRACTICE and assignment.annotations.exists()
    ):
        name = "adjudicate-next" if assignment.is_adjudication else "assignment-answer"
        after = campaign.pk if assignment.is_adjudication else assignment.pk
        return _go_to(request, reverse(f"annotation:{name}", args=[campaign.project.slug, after]))
    if request.htmx and "again" not in request.POST:  # type: ignore[attr-defined]
        response = _next(request, campaign, assignment.annotator)
        response["HX-Trigger-After-Settle"] = "work:next"
        return trigger_client_event(response, "toast", {"words": words}) if is_news else response
    messages.success(request, words)
    return _go_to(request, reverse("annotation:work", args=[campaign.project.slug, campaign.pk]))


def _go_to(request: ProjectRequest, url: str) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(headers={"HX-Redirect": url})
    return redirect(url)


@require_POST
@project_view()
def draft(request: ProjectRequest, project: Project, pk: int) -> JsonResponse:
    """Autosave. Answers whether the item is still held."""
    assignment = _mine(request, project, pk)
    fields = page.posted(request.POST, assignment.item.campaign)
    assignment = _save_draft(request, assignment, fields)
    return JsonResponse({"saved": True, "held": not assignment.is_late})


def _save_draft(request: ProjectRequest, assignment: Assignment, fields: dict[str, str]) -> Assignment:
    return services.save_draft(
        assignment=assignment,
        fields=fields,
        idempotency_key=_key(request),
        by=request.user,
        active_seconds=page.seconds(request.POST),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@project_view()
def leave(request: ProjectRequest, project: Project, pk: int, how: str) -> HttpResponse:
    """Skip or flag, with a reason; the page of its own is for browsers without a script."""
    if how not in LEAVE:
        raise NotFound("There is nothing here, or it is not yours to see.")
    assignment = _mine(request, project, pk)
    if request.method != "POST":
        context = {"project": project, "campaign": assignment.item.campaign, "assignment": assignment}
        return render(request, "annotation/assignment_leave.html", context | page.leaving(how))
    reason = request.POST.get("words", "").strip() or request.POST.get("reason", "")
    LEAVE[how](assignment=assignment, reason=reason, by=request.user)
    return _after(request, assignment, "Skipped." if how == "skip" else "Flagged; the researchers see it.")


def _mine(request: ProjectRequest, project: Project, pk: int) -> Assignment:
    annotator = services.annotator_for(project=project, user=request.user)
    assignment = selectors.assignment_of(annotator, pk)
    if assignment.is_adjudication and not Role(request.membership.role).includes(Role.REVIEWER):
        raise PermissionDenied("Only reviewers adjudicate.")
    return assignment


def _key(request: ProjectRequest) -> uuid.UUID:
    try:
        return uuid.UUID(request.POST.get("idempotency_key", ""))
    except ValueError:
        raise DomainError("This form has no key of its own; open the page anew and send it again.") from None
