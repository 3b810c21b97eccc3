"""Training one model over several processes."""

import os
from collections.abc import Mapping

import torch

from workers.train.distributed.group import ProcessGroup


def join_process_group(device: torch.device) -> ProcessGroup:
    """The group that torchrun's environment names; a group of one without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ProcessGroup()
    from workers.train.distributed.replicated import ReplicatedGroup  # torch.distributed takes time to import

    return ReplicatedGroup(device)


def threads_of_process(environment: Mapping[str, str]) -> int | None:
    """Of several processes on this machine each takes its share of the cores; None: torch's default.

    More threads than cores make training slower than one process with all of them.
    """
    processes = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    if processes == 1 or "OMP_NUM_THREADS" in environment:
        return None
    return max(1, len(os.sched_getaffinity(0)) // processes)
