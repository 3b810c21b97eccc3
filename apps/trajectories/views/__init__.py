from apps.trajectories.views.comparing import agents_compare, task_tree, trajectories_diff
from apps.trajectories.views.explorer import (
    filter_delete,
    filter_save,
    project_node,
    trajectories_tag,
    trajectory_list,
)
from apps.trajectories.views.traces import traces_receive
from apps.trajectories.views.upload import (
    import_cancel,
    import_detail,
    import_start,
    trajectory_upload,
    upload_map,
)
from apps.trajectories.views.viewer import (
    attachment_detail,
    attachment_small,
    step_detail,
    trajectory_detail,
    trajectory_find,
    trajectory_steps,
)

__all__ = [
    "agents_compare",
    "attachment_detail",
    "attachment_small",
    "filter_delete",
    "filter_save",
    "import_cancel",
    "import_detail",
    "import_start",
    "project_node",
    "step_detail",
    "task_tree",
    "traces_receive",
    "trajectories_diff",
    "trajectories_tag",
    "trajectory_detail",
    "trajectory_find",
    "trajectory_list",
    "trajectory_steps",
    "trajectory_upload",
    "upload_map",
]
