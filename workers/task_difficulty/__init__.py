"""How difficult tasks are, from outcomes and from their texts, and which to run next."""

from workers.task_difficulty.success_model import (
    SuccessEstimate,
    SuccessModel,
    TaskOutcomes,
    fit_success_model,
)
from workers.task_difficulty.task_order import ORDERS, TaskOrder, draw_tasks, ordered_tasks

__all__ = [
    "ORDERS",
    "SuccessEstimate",
    "SuccessModel",
    "TaskOrder",
    "TaskOutcomes",
    "draw_tasks",
    "fit_success_model",
    "ordered_tasks",
]
