"""Campaigns over the JSON API: what their pages do."""

from typing import Any

from ninja import Router, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.annotation import services
from apps.annotation.agreement import agreement
from apps.annotation.campaign_schemas import (
    AgreementOut,
    CampaignChange,
    CampaignIn,
    CampaignOut,
    CampaignPage,
    CampaignState,
    ProgressOut,
)
from apps.annotation.models import Campaign
from apps.annotation.selectors import campaign_progress, get_campaign_by_name
from apps.core.errors import Conflict
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.rubrics.selectors import rubric_named

router = Router()
READ = (Scope.INGEST, Scope.FEEDBACK_READ, Scope.ADMIN)


def _refuse_draft(*, campaign: Campaign) -> Campaign:
    """Only a new campaign is a draft."""
    if campaign.state == Campaign.State.DRAFT:
        return campaign
    raise Conflict(
        "A campaign that was opened cannot become a draft again; set its state to paused.", pointer="/state"
    )


_STATE_CHANGES = {
    Campaign.State.DRAFT: _refuse_draft,
    Campaign.State.OPEN: services.open_campaign,
    Campaign.State.PAUSED: services.pause_campaign,
    Campaign.State.CLOSED: services.close_campaign,
    Campaign.State.ARCHIVED: services.archive_campaign,
}


@router.get(
    "/projects/{slug}/campaigns", response=CampaignPage, summary="List campaigns", openapi_extra=needs(*READ)
)
def list_campaigns(
    request: KeyRequest,
    slug: str,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    state: CampaignState | None = None,
) -> CampaignPage:
    """Newest first."""
    project = project_of_key(request.auth, slug, *READ)
    rows = project.campaigns.select_related("rubric")
    page, following = paginate(rows.filter(state=state) if state else rows, cursor=cursor, limit=limit)
    return CampaignPage(items=[campaign_out(campaign) for campaign in page], next=following)


@router.post(
    "/projects/{slug}/campaigns",
    response={201: CampaignOut},
    summary="Create a campaign",
    openapi_extra=needs(Scope.ADMIN),
)
def create_campaign(request: KeyRequest, slug: str, body: CampaignIn) -> Status[CampaignOut]:
    """It is open from now on. `items` also makes items of the project's trajectories, as
    `POST .../campaigns/{name}/items` does."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    fields = _with_rubric(project, body.dict(exclude={"items"}))
    campaign = services.create_campaign(project=project, by=request.auth, **fields)
    if body.items is not None:
        services.build_items(campaign=campaign, choice=body.items.options())
    return Status(201, campaign_out(campaign))


@router.get(
    "/projects/{slug}/campaigns/{path:name}/agreement",
    response=AgreementOut,
    summary="Agreement between the annotators of a campaign",
    openapi_extra=needs(Scope.FEEDBACK_READ),
)
def get_agreement(request: KeyRequest, slug: str, name: str) -> AgreementOut:
    """Krippendorff's alpha and Cohen's kappas by feedback type and criterion, as the command `agreement` prints."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_READ)
    campaign = get_campaign_by_name(project, name)
    found = agreement(project=project, campaign=campaign.name)
    return AgreementOut.model_validate({"campaign": campaign.name, **found})


@router.get(
    "/projects/{slug}/campaigns/{path:name}",
    response=CampaignOut,
    summary="A campaign and its progress",
    openapi_extra=needs(*READ),
)
def get_campaign(request: KeyRequest, slug: str, name: str) -> CampaignOut:
    return campaign_out(get_campaign_by_name(project_of_key(request.auth, slug, *READ), name))


@router.patch(
    "/projects/{slug}/campaigns/{path:name}",
    response=CampaignOut,
    summary="Change a campaign, or its state",
    openapi_extra=needs(Scope.ADMIN),
)
def change_campaign(request: KeyRequest, slug: str, name: str, body: CampaignChange) -> CampaignOut:
    """Fields that are left out stay. A paused campaign assigns no new items; a closed or archived one takes nothing."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    campaign = get_campaign_by_name(project, name)
    changes = _with_rubric(project, body.dict(exclude_unset=True))
    state = changes.pop("state", None)
    if changes:
        campaign = services.update_campaign(campaign=campaign, **changes)
    if state is not None:
        campaign = _STATE_CHANGES[state](campaign=campaign)
    return campaign_out(campaign)


def _with_rubric(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a body with the rubric that they name."""
    if fields.get("rubric"):
        fields["rubric"] = rubric_named(project, fields["rubric"], pointer="/rubric")
    return fields


def campaign_out(campaign: Campaign) -> CampaignOut:
    progress = campaign_progress(campaign)
    names = CampaignOut.model_fields.keys() - {"rubric", "progress", "created", "completed", "hourly_pay"}
    fields: dict[str, Any] = {name: getattr(campaign, name) for name in names}
    return CampaignOut(
        **fields,
        rubric=str(campaign.rubric) if campaign.rubric else None,
        hourly_pay=None if campaign.hourly_pay is None else float(campaign.hourly_pay),
        progress=ProgressOut(**{name: getattr(progress, name) for name in ProgressOut.model_fields}),
        created=campaign.created_at,
        completed=campaign.completed_at,
    )
