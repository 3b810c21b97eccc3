"""The device that torch computes on."""

import os

import torch

from workers.errors import RewardError


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu` or `cuda`. Raises RewardError for anything else, and for cuda where there is none."""
    if name not in ("auto", "cpu", "cuda"):
        raise RewardError(f"unknown device {name!r}; known are auto, cpu, cuda.", pointer="/device")
    there = torch.cuda.is_available() if name != "cpu" else False
    if name == "cuda" and not there:
        raise RewardError(
            "the device is to be cuda, but torch finds none on this machine; run it where there is one, or choose auto "
            "or cpu (TOUCHSTONE_TRAINING_DEVICE on the worker).",
            pointer="/device",
        )
    if not there:
        return torch.device("cpu")
    mine = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))  # of several processes each has one
    torch.cuda.set_device(mine)
    return mine
