"""Every state change of annotation: keyword-only, atomic, one name for each."""

from apps.annotation.services.annotations import (
    flag_assignment,
    save_draft,
    skip_assignment,
    submit_annotation,
)
from apps.annotation.services.annotators import annotator_for
from apps.annotation.services.builder import (
    Choice,
    Differ,
    ItemFilters,
    ItemPreview,
    build_items,
    count_items,
)
from apps.annotation.services.campaigns import (
    archive_campaign,
    close_campaign,
    create_campaign,
    end_pilot,
    note_done,
    open_campaign,
    pause_campaign,
    start_pilot,
    update_campaign,
)
from apps.annotation.services.gold import adjudicate, let_go_on, set_purpose
from apps.annotation.services.items import (
    Added,
    ItemSpec,
    add_items,
    give_items,
    item_key,
    release_all,
    set_acquisition_scores,
    take_back,
)
from apps.annotation.services.queue import assign_next_item, expire_locks, open_items

__all__ = [
    "Added",
    "Choice",
    "Differ",
    "ItemFilters",
    "ItemPreview",
    "ItemSpec",
    "add_items",
    "adjudicate",
    "annotator_for",
    "archive_campaign",
    "assign_next_item",
    "build_items",
    "close_campaign",
    "count_items",
    "create_campaign",
    "end_pilot",
    "expire_locks",
    "flag_assignment",
    "give_items",
    "item_key",
    "let_go_on",
    "note_done",
    "open_campaign",
    "open_items",
    "pause_campaign",
    "release_all",
    "save_draft",
    "set_acquisition_scores",
    "set_purpose",
    "skip_assignment",
    "start_pilot",
    "submit_annotation",
    "take_back",
    "update_campaign",
]
