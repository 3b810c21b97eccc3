"""One model whose weights are sharded over several processes: FSDP2, for models that do not fit into each."""

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
from torch.distributed.tensor import DTensor

from workers.train.distributed.replicated import ReplicatedGroup

_FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SPREAD = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


class ShardedGroup(ReplicatedGroup):
    is_sharded = True

    def shard(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        mesh = dist.init_device_mesh(self.device.type, (self.world_size,))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """FSDP has taken the mean over ranks of what is sharded; the sum of the rest remains (`objectives`)."""
        sharded = [parameter for parameter in parameters if isinstance(parameter, DTensor)]
        for parameter in sharded:
            if parameter.grad is not None:
                parameter.grad.mul_(self.world_size)
        super().sum_gradients([parameter for parameter in parameters if not isinstance(parameter, DTensor)])

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
        """state: also that of a whole model, which has numbers where a sharded one has the names of parameters."""
        named = _with_names(module, optimiser, state)
        set_optimizer_state_dict(module, optimiser, named, options=_SPREAD)


def _with_names(module: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    name_by_id = {id(parameter): name for name, parameter in module.named_parameters()}
    ordered = [name_by_id[id(parameter)] for group in optimiser.param_groups for parameter in group["params"]]
    return {
        "state": {_name(key, ordered): value for key, value in state["state"].items()},
        "param_groups": [
            group | {"params": [_name(key, ordered) for key in group["params"]]}
            for group in state["param_groups"]
        ],
    }


def _name(key: int | str, ordered: Sequence[str]) -> str:
    return ordered[key] if isinstance(key, int) else key
