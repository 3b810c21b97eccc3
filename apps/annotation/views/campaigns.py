"""Campaigns: what there is, making and changing them, how far they are."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation import selectors, services
from apps.annotation.forms import CampaignForm, PairForm
from apps.annotation.kinds import KINDS
from apps.annotation.models import Campaign
from apps.core.errors import DomainError

MOVES = {"open": services.open_campaign, "pause": services.pause_campaign, "close": services.close_campaign}
SAID = {"open": "is open: annotators can go on.", "pause": "is paused.", "close": "is closed."}


def _is_researcher(request: ProjectRequest) -> bool:
    return Role(request.membership.role).includes(Role.RESEARCHER)


@require_safe
@project_view()
def campaign_list(request: ProjectRequest, project: Project) -> HttpResponse:
    if not _is_researcher(request):
        annotator = services.annotator_for(project=project, user=request.user)
        context: dict[str, Any] = {"project": project, "mine": selectors.my_campaigns(project, annotator)}
        return render(request, "annotation/my_campaigns.html", context)
    campaigns = project.campaigns.order_by("-created_at", "-pk")
    rows = [(campaign, selectors.progress_of(campaign)) for campaign in campaigns]
    return render(request, "annotation/campaign_list.html", {"project": project, "rows": rows})


@require_safe
@project_view()
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    """The station of the project home."""
    count = project.campaigns.count()
    done = sum(selectors.progress_of(campaign).done for campaign in project.campaigns.all())
    context: dict[str, Any] = {"count": count, "unit": "campaign" if count == 1 else "campaigns"}
    context["text"] = f"{done} judgement{'' if done == 1 else 's'}" if count else ""
    if _is_researcher(request):
        name, label = ("campaign-list", "Follow them") if count else ("campaign-create", "Start one")
        context |= {"url": reverse(f"annotation:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def campaign_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.campaign_in(project, pk)
    return render(
        request, "annotation/campaign_detail.html", _detail(project, campaign, PairForm(project=project))
    )


def _detail(project: Project, campaign: Campaign, form: PairForm) -> dict[str, Any]:
    return {
        "project": project,
        "campaign": campaign,
        "progress": selectors.progress_of(campaign),
        "people": selectors.people_of(campaign),
        "flagged": selectors.flagged_in(campaign)[:50],
        "pair_form": form,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def campaign_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = CampaignForm(request.POST or None, instance=Campaign(project=project, kinds=list(KINDS)))
    pair_form = PairForm(request.POST or None, project=project)
    context: dict[str, Any] = {"project": project, "form": form, "pair_form": pair_form}
    if request.method == "POST" and pair_form.is_valid() and "preview" in request.POST:
        context["preview"] = services.count_pairs(project=project, **pair_form.options)
    elif request.method == "POST" and form.is_valid() and pair_form.is_valid():
        try:
            campaign = _create(request, project, form, pair_form)
        except DomainError as error:
            form.add_error(_field(error, form), error.message)
        else:
            return redirect("annotation:campaign-detail", project.slug, campaign.pk)
    return render(
        request, "annotation/campaign_create.html", context, status=422 if _has_errors(context) else 200
    )


def _has_errors(context: dict[str, Any]) -> bool:
    forms = (context["form"], context["pair_form"])
    return "preview" not in context and any(form.is_bound and form.errors for form in forms)


@transaction.atomic
def _create(request: ProjectRequest, project: Project, form: CampaignForm, pair_form: PairForm) -> Campaign:
    campaign = services.create_campaign(project=project, by=request.user, **form.cleaned_data)
    if pair_form.cleaned_data["per_task"]:
        added = services.build_pairs(campaign=campaign, **pair_form.options)
        messages.success(request, f"{campaign.name} is open with {added.created} pairs.")
    return campaign


def _field(error: DomainError, form: CampaignForm) -> str | None:
    name = (error.pointer or "").removeprefix("/")
    return name if name in form.fields else None


@require_safe
@project_view(Role.RESEARCHER)
def pair_preview(request: ProjectRequest, project: Project) -> HttpResponse:
    """How many pairs the options choose, as a fragment."""
    form = PairForm(request.GET, project=project)
    context: dict[str, Any] = {"pair_form": form}
    if form.is_valid() and form.cleaned_data["per_task"]:
        context["preview"] = services.count_pairs(project=project, **form.options)
    return render(request, "annotation/_pair_preview.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def campaign_update(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.campaign_in(project, pk)
    form = CampaignForm(request.POST or None, instance=campaign)
    if request.method == "POST" and form.is_valid():
        try:
            services.update_campaign(campaign=selectors.campaign_in(project, pk), **form.cleaned_data)
        except DomainError as error:
            form.add_error(_field(error, form), error.message)
        else:
            messages.success(request, "Saved.")
            return redirect("annotation:campaign-detail", project.slug, campaign.pk)
    context = {"project": project, "campaign": campaign, "form": form}
    return render(request, "annotation/campaign_update.html", context, status=422 if form.errors else 200)


@require_POST
@project_view(Role.RESEARCHER)
def campaign_pairs(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Add more pairs to a campaign."""
    campaign = selectors.campaign_in(project, pk)
    form = PairForm(request.POST, project=project)
    if not form.is_valid():
        return render(
            request, "annotation/campaign_detail.html", _detail(project, campaign, form), status=422
        )
    added = services.build_pairs(campaign=campaign, **form.options)
    messages.success(request, f"{added.created} pairs added; {added.duplicates} were there already.")
    return redirect("annotation:campaign-detail", project.slug, campaign.pk)


@require_POST
@project_view(Role.RESEARCHER)
def campaign_state(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    campaign = selectors.campaign_in(project, pk)
    move = request.POST.get("move", "")
    if move not in MOVES:
        raise DomainError(f"A campaign can be moved by {', '.join(MOVES)}; not by {move!r}.")
    MOVES[move](campaign=campaign)
    messages.success(request, f"{campaign.name} {SAID[move]}")
    return redirect("annotation:campaign-detail", project.slug, campaign.pk)
