from apps.rewards.views.compose import endpoint_compose
from apps.rewards.views.endpoint import (
    endpoint_deploy,
    endpoint_detail,
    endpoint_list,
    endpoint_rollback,
    endpoint_state,
    endpoint_switch,
    endpoint_try,
    project_node,
)
from apps.rewards.views.reasons import trajectory_reasons
from apps.rewards.views.release import (
    release_canary,
    release_promote,
    release_roll_back,
    release_start,
    release_state,
)
from apps.rewards.views.usage import endpoint_samples, endpoint_usage, sample_detail

__all__ = [
    "endpoint_compose",
    "endpoint_deploy",
    "endpoint_detail",
    "endpoint_list",
    "endpoint_rollback",
    "endpoint_samples",
    "endpoint_state",
    "endpoint_switch",
    "endpoint_try",
    "endpoint_usage",
    "project_node",
    "release_canary",
    "release_promote",
    "release_roll_back",
    "release_start",
    "release_state",
    "sample_detail",
    "trajectory_reasons",
]
