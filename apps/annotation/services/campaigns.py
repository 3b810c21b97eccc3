"""Making and changing campaigns. `version` grows when what annotators see changes."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import Project, User
from apps.annotation.kinds import KINDS
from apps.annotation.models import Campaign, Item
from apps.core.errors import Conflict, DomainError

SEEN = ("kinds", "guidelines", "swap_sides", "blind_agents", "show_outcome")
CHANGEABLE = ("name", *SEEN, "overlap", "ordering", "lease_minutes")


@transaction.atomic
def create_campaign(
    *,
    project: Project,
    name: str,
    kinds: Sequence[str],
    by: User | None = None,
    guidelines: str = "",
    overlap: int = 1,
    ordering: str = Campaign.Ordering.RANDOM,
    swap_sides: bool = True,
    blind_agents: bool = True,
    show_outcome: bool = False,
    lease_minutes: int = 30,
) -> Campaign:
    campaign = Campaign(
        project=project,
        name=name.strip(),
        kinds=list(kinds),
        guidelines=guidelines,
        overlap=overlap,
        ordering=ordering,
        swap_sides=swap_sides,
        blind_agents=blind_agents,
        show_outcome=show_outcome,
        lease_minutes=lease_minutes,
        created_by=by,
    )
    _save(campaign)
    return campaign


@transaction.atomic
def update_campaign(*, campaign: Campaign, **changes: Any) -> Campaign:
    """Change fields; a different overlap also goes to the items already there."""
    unknown = next((name for name in changes if name not in CHANGEABLE), None)
    if unknown is not None:
        raise DomainError(f"A campaign's {unknown!r} cannot be changed; {', '.join(CHANGEABLE)} can.")
    campaign = _locked(campaign)
    changed = {name for name, value in changes.items() if getattr(campaign, name) != value}
    if "kinds" in changed and campaign.items.exists():
        raise Conflict(
            "The kinds of feedback cannot change once a campaign has items; make another campaign."
        )
    for name in changed:
        setattr(campaign, name, changes[name])
    if changed & set(SEEN):
        campaign.version += 1
    _save(campaign)
    if "overlap" in changed:
        Item.objects.filter(campaign=campaign).update(wanted=campaign.overlap)
    return campaign


def open_campaign(*, campaign: Campaign) -> Campaign:
    return _move(campaign, Campaign.State.OPEN)


def pause_campaign(*, campaign: Campaign) -> Campaign:
    """Nothing new is handed out; what is being judged can still be submitted."""
    return _move(campaign, Campaign.State.PAUSED)


def close_campaign(*, campaign: Campaign) -> Campaign:
    return _move(campaign, Campaign.State.CLOSED)


@transaction.atomic
def _move(campaign: Campaign, state: Campaign.State) -> Campaign:
    campaign = _locked(campaign)
    campaign.state = state
    campaign.save(update_fields=["state"])
    return campaign


def _locked(campaign: Campaign) -> Campaign:
    return Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)


def _save(campaign: Campaign) -> None:
    if not campaign.name:
        raise DomainError("A campaign needs a name.", pointer="/name")
    unknown = next((kind for kind in campaign.kinds if kind not in KINDS), None)
    if unknown is not None or not campaign.kinds:
        raise DomainError(
            f"A campaign asks for at least one kind of feedback; known are {', '.join(KINDS)}.",
            pointer="/kinds",
        )
    if not 1 <= campaign.overlap <= 100:
        raise DomainError(
            "The overlap is the number of annotators per item, from 1 to 100.", pointer="/overlap"
        )
    if not 1 <= campaign.lease_minutes <= 1440:
        raise DomainError("A lease lasts from 1 to 1440 minutes.", pointer="/lease_minutes")
    campaign.kinds = [name for name in KINDS if name in campaign.kinds]  # one order everywhere, none twice
    try:
        with transaction.atomic():
            campaign.save()
    except IntegrityError as error:
        if "campaign_name_once" not in str(error):
            raise
        raise Conflict(
            f"This project already has a campaign called {campaign.name!r}; choose another name.",
            pointer="/name",
        ) from None
