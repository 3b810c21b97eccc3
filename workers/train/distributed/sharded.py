"""One model whose weights are sharded over several processes: FSDP2, for models that do not fit into each."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.tensor as distributed_tensor
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from workers.train.checkpoints import checkpoint_path, file_sizes, save_checkpoint, shards_folder
from workers.train.distributed.replicated import ReplicatedGroup
from workers.train.distributed.shards import read_shards, take_shards, write_shards

_BY_ROWS = (Shard(0),)  # how FSDP2 shards every parameter


class ShardedGroup(ReplicatedGroup):
    is_sharded = True

    def shard(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        self.mesh = dist.init_device_mesh(self.device.type, (self.world_size,))
        for block in blocks:
            fully_shard(block, mesh=self.mesh)
        fully_shard(model, mesh=self.mesh)

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
        """DTensors on the CPU, each with the part of this rank."""
        return {name: tensor.to("cpu", copy=True) for name, tensor in self._trained_state(module).items()}

    def whole_weights(self, module: nn.Module) -> dict[str, Tensor]:
        """Gathered one by one; only the main process keeps them."""
        whole = {}
        for name, tensor in self._trained_state(module).items():
            gathered = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if self.is_main_process:
                whole[name] = gathered.to("cpu", copy=True)
        return whole

    def _trained_state(self, module: nn.Module) -> dict[str, Tensor]:
        """`state_dict` brings parameters that a forward pass has gathered back to their parts."""
        state = module.state_dict()
        trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
        return {name: tensor.detach() for name, tensor in state.items() if name in trained}

    @torch.no_grad()
    def load_weights(self, module: nn.Module, weights: dict[str, Tensor]) -> None:
        """weights: also those of a whole model."""
        state = module.state_dict()
        for name, weight in weights.items():
            if name in state:
                _part(state[name]).copy_(_part(self._sharded_like(state[name], weight)))

    def load_optimiser(self, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """state: also that of a whole model."""
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        keys = [key for group in state["param_groups"] for key in group["params"]]
        sharded = {
            key: {name: self._sharded_like(parameter, value) for name, value in state["state"][key].items()}
            for key, parameter in zip(keys, parameters, strict=True)
            if key in state["state"]
        }
        optimiser.load_state_dict(state | {"state": sharded})

    def save_checkpoint(self, folder: Path, step: int, state: dict[str, Any]) -> None:
        """Every rank writes its own parts of sharded tensors, the main process the rest, after all of them."""
        rest, shards = take_shards(state)
        path = checkpoint_path(folder, step)
        if self.is_main_process:  # others wait for its plan before they write
            path.unlink(missing_ok=True)
            shutil.rmtree(shards_folder(path), ignore_errors=True)
        write_shards(shards_folder(path), shards)
        if self.is_main_process:
            save_checkpoint(folder, step, rest | {"shards": file_sizes(shards_folder(path))})

    def complete_checkpoint(self, folder: Path, state: dict[str, Any]) -> dict[str, Any]:
        if "shards" not in state:
            return state
        return read_shards(shards_folder(checkpoint_path(folder, state["step"])), state, self._empty)

    def _empty(self, size: torch.Size, dtype: torch.dtype) -> Tensor:
        empty: Tensor = distributed_tensor.empty(
            size, dtype=dtype, device_mesh=self.mesh, placements=_BY_ROWS
        ).cpu()
        return empty

    def _sharded_like(self, like: Tensor, value: Any) -> Any:
        """value: where it is a whole tensor of the shape of a sharded one, the part of this rank."""
        is_whole = isinstance(value, Tensor) and not isinstance(value, DTensor)
        if not is_whole or not isinstance(like, DTensor) or value.shape != like.shape:
            return value
        return distribute_tensor(value, self.mesh, _BY_ROWS, src_data_rank=None)


def _part(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
