"""What hands out work is refused by a campaign that hands out nothing."""

from apps.annotation.models import Campaign
from apps.core.errors import Conflict


def require_unclosed(campaign: Campaign, action: str) -> None:
    """action: what was asked for, after "before you"."""
    if campaign.is_closed:
        raise Conflict(
            f"{campaign.name} is {campaign.get_state_display().lower()} and assigns no items. "
            f"Reopen the campaign before you {action}."
        )
