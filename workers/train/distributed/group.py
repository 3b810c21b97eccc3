"""The processes that train one model: what the training loop asks of them, and a group of one."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class ProcessGroup:
    """One process. rank 0 writes what there is to write.

    is_sharded: every forward and backward pass is a collective operation, so that all ranks run equally many.
    """

    rank, world_size, is_sharded = 0, 1, False

    @property
    def is_main_process(self) -> bool:
        return self.rank == 0

    def all_reduce_max(self, *numbers: float) -> list[float]:
        """The highest of every rank's."""
        return list(numbers)

    def all_reduce_sum(self, number: float) -> float:
        """The sum of every rank's."""
        return number

    def all_gather(self, value: Any) -> list[Any]:
        """Every rank's value, by rank."""
        return [value]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Over ranks. Parameters that no rank used keep no gradient, as with one process."""

    def clip_gradients(self, parameters: Sequence[nn.Parameter], norm: float) -> None:
        nn.utils.clip_grad_norm_(parameters, norm)

    def trained_weights(self, module: nn.Module) -> dict[str, Tensor]:
        """What is trained, whole and on the CPU."""
        trained = {
            name for name, named_parameter in module.named_parameters() if named_parameter.requires_grad
        }
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

    def destroy(self) -> None:
        """When all is done."""
