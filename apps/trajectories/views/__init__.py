from apps.trajectories.views.actions import trajectory_action
from apps.trajectories.views.comments import comment_create, comment_delete, comment_edit
from apps.trajectories.views.comparing import agents_compare, task_tree, trajectories_diff
from apps.trajectories.views.explorer import (
    project_node,
    trajectories_tag,
    trajectory_list,
    trajectory_list_by_task,
)
from apps.trajectories.views.filter_builder import filter_builder
from apps.trajectories.views.saved_views import view_change, view_create, view_delete
from apps.trajectories.views.traces import traces_receive
from apps.trajectories.views.upload import (
    import_cancel,
    import_detail,
    import_start,
    masking_edit,
    trajectory_upload,
    upload_map,
)
from apps.trajectories.views.viewer import (
    attachment_detail,
    attachment_small,
    step_detail,
    trajectory_detail,
    trajectory_find,
    trajectory_overview,
    trajectory_steps,
)
from apps.trajectories.views.workbench import trajectory_json, trajectory_tag

__all__ = [
    "agents_compare",
    "attachment_detail",
    "attachment_small",
    "comment_create",
    "comment_delete",
    "comment_edit",
    "filter_builder",
    "import_cancel",
    "import_detail",
    "import_start",
    "masking_edit",
    "project_node",
    "step_detail",
    "task_tree",
    "traces_receive",
    "trajectories_diff",
    "trajectories_tag",
    "trajectory_action",
    "trajectory_detail",
    "trajectory_find",
    "trajectory_json",
    "trajectory_list",
    "trajectory_list_by_task",
    "trajectory_overview",
    "trajectory_steps",
    "trajectory_tag",
    "trajectory_upload",
    "upload_map",
    "view_change",
    "view_create",
    "view_delete",
]
