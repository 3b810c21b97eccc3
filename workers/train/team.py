"""The processes that train one model together: alone, or under torchrun with FSDP2 (gloo on CPUs, nccl on GPUs).

Every rank holds all examples and takes every nth group of a batch. Losses divide by the examples of the whole batch, so
that two ranks do what one does.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

_FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SPREAD = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


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


class ShardedTeam(Team):
    """One of several, as torchrun starts them."""

    def __init__(self, device: torch.device) -> None:
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.size, self.device = dist.get_rank(), dist.get_world_size(), device

    def join(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        from torch.distributed.fsdp import fully_shard

        mesh = dist.init_device_mesh(self.device.type, (self.size,))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)

    def most(self, *numbers: float) -> list[float]:
        together = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(together, dist.ReduceOp.MAX)
        found: list[float] = together.tolist()
        return found

    def total(self, number: float) -> float:
        together = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.all_reduce(together)
        return float(together)

    def same(self, value: Any) -> Any:
        told = [value]
        dist.broadcast_object_list(told, src=0, device=self.device)
        return told[0]

    def share_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Their mean, as FSDP's of what is sharded."""
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.size

    def clip(self, parameters: Sequence[nn.Parameter], norm: float) -> None:
        """Over sharded and whole parameters together."""
        squares = torch.zeros((), device=self.device)
        for parameter in parameters:
            if parameter.grad is not None:
                one = torch.nn.utils.get_total_norm([parameter.grad])
                squares = squares + getattr(one, "full_tensor", lambda: one)().square()  # noqa: B023 (called at once)
        factor = (norm / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(float(factor))

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        trained = {name for name, one in module.named_parameters() if one.requires_grad}
        whole = get_model_state_dict(module, options=_FULL)
        return {
            name: tensor for name, tensor in whole.items() if name in trained and isinstance(tensor, Tensor)
        }

    def load_weights(self, module: nn.Module, weights: dict[str, Tensor]) -> None:
        whole = get_model_state_dict(module, options=_FULL) | weights
        set_model_state_dict(module, whole, options=_SPREAD)

    def optimiser_state(self, module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        return get_optimizer_state_dict(module, optimiser, options=_FULL)

    def load_optimiser(
        self, module: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any]
    ) -> None:
        set_optimizer_state_dict(module, optimiser, state, options=_SPREAD)

    def leave(self) -> None:
        dist.destroy_process_group()


def team_of(device: torch.device) -> Team:
    """The team that torchrun's environment speaks of; alone without it."""
    return ShardedTeam(device) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Team()
