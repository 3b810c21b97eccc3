"""What every trainer of a reward model is given, and what it tells."""

from dataclasses import dataclass, field
from typing import Any

from workers.objectives import Examples
from workers.schema.recipe import Recipe
from workers.train.distributed.group import ProcessGroup
from workers.train.events import Report
from workers.train.limits import TrainingLimits
from workers.train.multi_objective import MultiObjectiveModule


@dataclass
class Training:
    """cache: of `new_cache` of the model, or None. losses: by step, over all attempts. elapsed: seconds."""

    module: MultiObjectiveModule
    recipe: Recipe
    validation: Examples
    seed: int
    report: Report
    cache: Any = None
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    process_group: ProcessGroup = field(default_factory=ProcessGroup)
    losses: list[float] = field(default_factory=list)
    step: int = 0
    elapsed: float = 0.0

    @property
    def end_cache(self) -> Any:
        """The cache for what is read at the ends of trajectories alone: rewards and states there."""
        return self.cache
