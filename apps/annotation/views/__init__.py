from apps.annotation.views.campaigns import (
    campaign_create,
    campaign_detail,
    campaign_list,
    campaign_pairs,
    campaign_state,
    campaign_update,
    pair_preview,
    project_node,
)
from apps.annotation.views.mine import history, my_work
from apps.annotation.views.work import assignment_detail, draft, leave, rows, submit, work

__all__ = [
    "assignment_detail",
    "campaign_create",
    "campaign_detail",
    "campaign_list",
    "campaign_pairs",
    "campaign_state",
    "campaign_update",
    "draft",
    "history",
    "leave",
    "my_work",
    "pair_preview",
    "project_node",
    "rows",
    "submit",
    "work",
]
