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
from apps.rewards.views.guard import guard_decision_detail, guard_log, guard_review
from apps.rewards.views.reasons import trajectory_reasons
from apps.rewards.views.release import (
    release_canary,
    release_promote,
    release_roll_back,
    release_start,
    release_state,
)
from apps.rewards.views.server import (
    replica_add,
    replica_drain,
    replica_remove,
    server_delete,
    server_list,
    server_state,
)
from apps.rewards.views.standby import standby_promote, standby_set
from apps.rewards.views.trajectory_rewards import trajectory_rewards
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
    "guard_decision_detail",
    "guard_log",
    "guard_review",
    "project_node",
    "release_canary",
    "release_promote",
    "release_roll_back",
    "release_start",
    "release_state",
    "replica_add",
    "replica_drain",
    "replica_remove",
    "sample_detail",
    "server_delete",
    "server_list",
    "server_state",
    "standby_promote",
    "standby_set",
    "trajectory_reasons",
    "trajectory_rewards",
]
