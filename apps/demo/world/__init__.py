"""The sample world: a small support desk, plain Python, deterministic. See `World`."""

from apps.demo.world.desk import DeskTask
from apps.demo.world.dice import Dice
from apps.demo.world.scoring import HiddenScore
from apps.demo.world.tasks import TASKS
from apps.demo.world.world import MAX_STEPS, SYSTEM, World, actions_of, hidden_reward, replay

__all__ = [
    "MAX_STEPS",
    "SYSTEM",
    "TASKS",
    "DeskTask",
    "Dice",
    "HiddenScore",
    "World",
    "actions_of",
    "hidden_reward",
    "replay",
]
