"""The device that torch computes on."""

import os
import resource
import sys

import torch

from workers.errors import RewardError


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu` or `cuda`. Raises RewardError for anything else, and for cuda where there is none."""
    if name not in ("auto", "cpu", "cuda"):
        raise RewardError(f"unknown device {name!r}; use auto, cpu or cuda.", pointer="/device")
    has_cuda = torch.cuda.is_available() if name != "cpu" else False
    if name == "cuda" and not has_cuda:
        raise RewardError(
            "the device is set to cuda, but torch finds no GPU on this machine; run on a machine with one, or set auto "
            "or cpu (TOUCHSTONE_TRAINING_DEVICE on the worker).",
            pointer="/device",
        )
    if not has_cuda:
        return torch.device("cpu")
    device = torch.device(
        "cuda", int(os.environ.get("LOCAL_RANK", "0"))
    )  # of several processes each has its own
    torch.cuda.set_device(device)
    return device


def peak_memory(device: torch.device) -> int:
    """Bytes: the peak of tensors on a GPU, else of the process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # kibibytes on other systems
