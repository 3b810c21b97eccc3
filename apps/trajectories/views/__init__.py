from apps.trajectories.views.explorer import project_node, trajectory_list
from apps.trajectories.views.upload import import_cancel, import_detail, import_start, trajectory_upload
from apps.trajectories.views.viewer import attachment_detail, step_detail, trajectory_detail, trajectory_steps

__all__ = [
    "attachment_detail",
    "import_cancel",
    "import_detail",
    "import_start",
    "project_node",
    "step_detail",
    "trajectory_detail",
    "trajectory_list",
    "trajectory_steps",
    "trajectory_upload",
]
