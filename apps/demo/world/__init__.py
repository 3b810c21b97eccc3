"""The sample world: a small support desk, plain Python, deterministic. See `World`."""

from apps.demo.world.desk import Task
from apps.demo.world.dice import Dice
from apps.demo.world.scoring import Score
from apps.demo.world.tasks import TASKS
from apps.demo.world.world import MAX_STEPS, SYSTEM, World, actions_of, hidden_reward, replay

__all__ = [
    "MAX_STEPS",
    "SYSTEM",
    "TASKS",
    "Dice",
    "Score",
    "Task",
    "World",
    "actions_of",
    "hidden_reward",
    "replay",
]
