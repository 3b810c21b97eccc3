"""The processes that train one model: what the training loop asks of them, and a group of one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from workers.train.checkpoints import checkpoint_path, save_checkpoint, shards_folder


class ProcessGroup:
    """One process. rank 0 writes what there is to write.

    is_sharded: every forward and backward pass is a collective operation, so that all ranks run equally many.
    """

    rank, world_size, is_sharded = 0, 1, False
    has_common_folder = True  # all ranks see the same run directory (`run_state`)

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

    def broadcast(self, value: Any, source: int) -> Any:
        """The value of the rank `source`."""
        return value

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Over ranks. Parameters that no rank used keep no gradient, as with one process."""

    def clip_gradients(self, parameters: Sequence[nn.Parameter], norm: float) -> None:
        nn.utils.clip_grad_norm_(parameters, norm)

    def trained_weights(self, module: nn.Module) -> dict[str, Tensor]:
        """A copy of what is trained, on the CPU. Of a sharded model every rank has its own part."""
        trained = {
            name for name, named_parameter in module.named_parameters() if named_parameter.requires_grad
        }
        state = module.state_dict()
        return {name: state[name].detach().cpu().clone() for name in state if name in trained}

    def whole_weights(self, module: nn.Module) -> dict[str, Tensor]:
        """A copy of what is trained, whole and on the CPU; for the main process, but all ranks call it."""
        return self.trained_weights(module)

    def load_weights(self, module: nn.Module, weights: dict[str, Tensor]) -> None:
        module.load_state_dict(weights, strict=False)

    def load_optimiser(self, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        optimiser.load_state_dict(state)

    def save_checkpoint(self, folder: Path, step: int, state: dict[str, Any]) -> None:
        """All ranks call it. See `checkpoints.save_checkpoint`."""
        if self.is_main_process:
            save_checkpoint(folder, step, state)

    def complete_checkpoint(self, folder: Path, state: dict[str, Any]) -> dict[str, Any]:
        """A state that was read, with the tensors that a sharded model's ranks wrote, whole. All ranks call it."""
        if "shards" not in state:
            return state
        from workers.train.distributed.shards import read_shards  # a second to import

        path = checkpoint_path(folder, state["step"])
        return read_shards(shards_folder(path), state, lambda size, dtype: torch.empty(size, dtype=dtype))

    def destroy(self) -> None:
        """When all is done."""
