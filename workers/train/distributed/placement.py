"""Where the weights of a model are while several processes train it: whole in each, or sharded."""

import os
from collections.abc import Sequence

import torch
from torch import nn

from workers.errors import RewardError
from workers.memory import memory_bytes
from workers.schema.recipe import Recipe
from workers.train.distributed.group import ProcessGroup

_SHARE = 0.5  # of a device's memory; the rest is for activations


def training_bytes(model: nn.Module) -> int:
    """Weights; of those that are trained also gradients and AdamW's two moments, as large as the weights each."""
    return sum(
        parameter.numel() * parameter.element_size() * (4 if parameter.requires_grad else 1)
        for parameter in model.parameters()
    )


def fits_whole(model: nn.Module, device: torch.device, processes: int) -> bool:
    """processes: on this machine; on CPUs they share its memory."""
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
    else:
        memory = memory_bytes() // processes
    return training_bytes(model) <= _SHARE * memory


def place_model(
    process_group: ProcessGroup, model: nn.Module, blocks: Sequence[nn.Module], recipe: Recipe
) -> ProcessGroup:
    """The group to train the model with, before its optimiser is made. blocks: its layers, sharded one by one.

    Sharded always, never, or where not every rank has memory for a whole copy (`sharding` of the recipe).
    """
    if process_group.world_size == 1 or recipe.sharding == "never":
        return process_group
    if recipe.sharding == "auto":
        device = next(model.parameters()).device
        processes = int(os.environ.get("LOCAL_WORLD_SIZE", process_group.world_size))
        (lacks,) = process_group.all_reduce_max(not fits_whole(model, device, processes))
        if not lacks:
            return process_group
    if recipe.base_weights == "nf4":
        raise RewardError(
            "weights of 4 bits are not sharded; with base_weights = 'nf4' every GPU holds the whole model. Leave "
            "sharding out, or set base_weights to 'bfloat16'.",
            pointer="/recipe/base_weights",
        )
    if not process_group.has_common_folder:
        raise RewardError(
            "this model has to be sharded over the GPUs, and several hosts without a common disk cannot resume "
            "it: each would have only its part of a checkpoint. Take one host with more GPUs, adapters (lora_rank), "
            "base_weights 'nf4', or a run directory on a disk of all hosts.",
            pointer="/recipe/sharding",
        )
    from workers.train.distributed.sharded import ShardedGroup  # a second to import

    group = ShardedGroup(next(model.parameters()).device)
    group.shard(model, blocks)
    return group
