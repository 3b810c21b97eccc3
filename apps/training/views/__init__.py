from apps.training.views.imports import model_import_cancel, model_import_create, model_import_detail
from apps.training.views.model_exports import (
    model_export_cancel,
    model_export_file,
    model_export_list,
    model_export_start,
)
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
    run_rename,
    run_resume,
    run_status,
)

__all__ = [
    "evaluation_detail",
    "model_card",
    "model_delete",
    "model_detail",
    "model_export_cancel",
    "model_export_file",
    "model_export_list",
    "model_export_start",
    "model_import_cancel",
    "model_import_create",
    "model_import_detail",
    "model_list",
    "model_tags",
    "project_node",
    "run_cancel",
    "run_compare",
    "run_create",
    "run_detail",
    "run_estimate",
    "run_list",
    "run_rename",
    "run_resume",
    "run_status",
]
