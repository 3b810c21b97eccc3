"""One model over several processes that each hold all of it: gradients are summed once for each optimiser step.

Every rank holds all examples and computes its share of a batch. Losses divide by the examples of the whole batch, so
that several ranks do what one does.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from workers.train.distributed.group import ProcessGroup

_BUCKET = 8 * 2**20  # numbers summed in one message: 32 MB in float32


class ReplicatedGroup(ProcessGroup):
    """gloo on CPUs, nccl on GPUs. Ranks begin with equal weights, which their seed gives them."""

    def __init__(self, device: torch.device) -> None:
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.world_size, self.device = dist.get_rank(), dist.get_world_size(), device

    def all_reduce_max(self, *numbers: float) -> list[float]:
        together = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(together, dist.ReduceOp.MAX)
        found: list[float] = together.tolist()
        return found

    def all_reduce_sum(self, number: float) -> float:
        together = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.all_reduce(together)
        return float(together)

    def all_gather(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.world_size
        dist.all_gather_object(found, value)
        return found

    def broadcast(self, value: Any, source: int) -> Any:
        values = [value]
        dist.broadcast_object_list(values, src=source, device=self.device)
        return values[0]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        if not parameters:
            return
        used = self.all_reduce_max(*(parameter.grad is not None for parameter in parameters))
        for bucket in _buckets(
            [parameter for parameter, is_used in zip(parameters, used, strict=True) if is_used]
        ):
            for parameter in bucket:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            gradients: list[Tensor] = [parameter.grad for parameter in bucket if parameter.grad is not None]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            for gradient, summed in zip(
                gradients, flat.split([each.numel() for each in gradients]), strict=True
            ):
                gradient.copy_(summed.view_as(gradient))

    def destroy(self) -> None:
        dist.destroy_process_group()


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """In their order, neighbours of one type together, until `_BUCKET` numbers."""
    for _, alike in groupby(parameters, key=lambda parameter: parameter.dtype):
        bucket: list[nn.Parameter] = []
        size = 0
        for parameter in alike:
            if bucket and size + parameter.numel() > _BUCKET:
                yield bucket
                bucket, size = [], 0
            bucket.append(parameter)
            size += parameter.numel()
        yield bucket
