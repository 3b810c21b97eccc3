"""The processes that train one model together: one, or those of workers.train.sharded."""

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Team:
    """One process. rank 0 writes what there is to write."""

    rank, size = 0, 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def join(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        """Before the optimiser is made."""

    def most(self, *numbers: float) -> list[float]:
        """The highest of every rank's."""
        return list(numbers)

    def total(self, number: float) -> float:
        """The sum of every rank's."""
        return number

    def same(self, value: Any) -> Any:
        """Rank 0's value."""
        return value

    def share_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Of what is not sharded."""

    def clip(self, parameters: Sequence[nn.Parameter], norm: float) -> None:
        nn.utils.clip_grad_norm_(parameters, norm)

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """What is trained, whole and on the CPU."""
        trained = {name for name, one in module.named_parameters() if one.requires_grad}
        state = module.state_dict()
        return {name: state[name].detach().cpu().clone() for name in state if name in trained}

    def load_weights(self, module: nn.Module, weights: dict[str, Tensor]) -> None:
        module.load_state_dict(weights, strict=False)

    def optimiser_state(self, module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        return optimiser.state_dict()

    def load_optimiser(
        self, module: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any]
    ) -> None:
        optimiser.load_state_dict(state)

    def leave(self) -> None:
        """When all is done."""


def team_of(device: torch.device) -> Team:
    """The team that torchrun's environment speaks of; alone without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Team()
    from workers.train.sharded import ShardedTeam  # a second to import

    return ShardedTeam(device)
