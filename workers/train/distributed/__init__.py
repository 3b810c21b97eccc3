"""Training one model over several processes."""

import os

import torch

from workers.train.distributed.group import ProcessGroup


def join_process_group(device: torch.device) -> ProcessGroup:
    """The group that torchrun's environment names; a group of one without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ProcessGroup()
    from workers.train.distributed.sharded import ShardedGroup  # a second to import

    return ShardedGroup(device)
