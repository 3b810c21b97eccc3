"""Every state change of annotation: keyword-only, atomic, one name for each."""

from apps.annotation.services.annotators import annotator_for
from apps.annotation.services.campaigns import (
    close_campaign,
    create_campaign,
    open_campaign,
    pause_campaign,
    update_campaign,
)
from apps.annotation.services.items import Added, ItemSpec, add_items, item_key
from apps.annotation.services.pairs import Differ, PairFilters, PairPreview, build_pairs, count_pairs
from apps.annotation.services.queue import expire_leases, lease_next
from apps.annotation.services.submissions import (
    flag_assignment,
    save_draft,
    skip_assignment,
    submit_judgement,
)

__all__ = [
    "Added",
    "Differ",
    "ItemSpec",
    "PairFilters",
    "PairPreview",
    "add_items",
    "annotator_for",
    "build_pairs",
    "close_campaign",
    "count_pairs",
    "create_campaign",
    "expire_leases",
    "flag_assignment",
    "item_key",
    "lease_next",
    "open_campaign",
    "pause_campaign",
    "save_draft",
    "skip_assignment",
    "submit_judgement",
    "update_campaign",
]
