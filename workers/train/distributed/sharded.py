"""One model over several processes, as torchrun starts them: FSDP2 (gloo on CPUs, nccl on GPUs).

Every rank holds all examples and takes every nth group of a batch. Losses divide by the examples of the whole batch, so
that two ranks do what one does.
"""

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
from torch.distributed.fsdp import fully_shard

from workers.train.distributed.group import ProcessGroup

_FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SPREAD = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


class ShardedGroup(ProcessGroup):
    def __init__(self, device: torch.device) -> None:
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.world_size, self.device = dist.get_rank(), dist.get_world_size(), device

    def shard(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        mesh = dist.init_device_mesh(self.device.type, (self.world_size,))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)

    def all_reduce_max(self, *numbers: float) -> list[float]:
        together = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(together, dist.ReduceOp.MAX)
        found: list[float] = together.tolist()
        return found

    def all_reduce_sum(self, number: float) -> float:
        together = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.all_reduce(together)
        return float(together)

    def broadcast(self, value: Any) -> Any:
        told = [value]
        dist.broadcast_object_list(told, src=0, device=self.device)
        return told[0]

    def all_reduce_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Their mean, as FSDP's of what is sharded."""
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.world_size

    def clip_gradients(self, parameters: Sequence[nn.Parameter], norm: float) -> None:
        """Over sharded and whole parameters together."""
        squares = torch.zeros((), device=self.device)
        for parameter in parameters:
            if parameter.grad is not None:
                gradient_norm = torch.nn.utils.get_total_norm([parameter.grad])
                squares = squares + getattr(gradient_norm, "full_tensor", lambda: gradient_norm)().square()  # noqa: B023 (called immediately)
        factor = (norm / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(float(factor))

    def trained_weights(self, module: nn.Module) -> dict[str, Tensor]:
        trained = {
            name for name, named_parameter in module.named_parameters() if named_parameter.requires_grad
        }
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

    def destroy(self) -> None:
        dist.destroy_process_group()
