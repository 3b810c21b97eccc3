from apps.training.views.models import (
    evaluation_detail,
    model_card,
    model_delete,
    model_detail,
    model_list,
    model_tags,
    project_node,
)
from apps.training.views.runs import (
    run_cancel,
    run_compare,
    run_create,
    run_detail,
    run_estimate,
    run_list,
    run_resume,
    run_status,
)

__all__ = [
    "evaluation_detail",
    "model_card",
    "model_delete",
    "model_detail",
    "model_list",
    "model_tags",
    "project_node",
    "run_cancel",
    "run_compare",
    "run_create",
    "run_detail",
    "run_estimate",
    "run_list",
    "run_resume",
    "run_status",
]
