"""The precision that a machine trains in."""

import time
from functools import cache

import torch
from torch import nn
from torch.nn import functional

from workers.schema.recipe import Recipe

_LEAST_GAIN = 1.2  # of bfloat16 over float32: below, its rounding buys nothing
_ROWS, _WIDTH, _TIMES = 512, 384, 4  # tokens and width of a layer of the embedded encoder


def uses_bfloat16(recipe: Recipe, device: torch.device) -> bool:
    """For `auto`: where the machine is quicker in it. The heads and the mixer always compute in float32."""
    if recipe.precision != "auto":
        return recipe.precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported()) and bfloat16_gain() >= _LEAST_GAIN


@cache
def bfloat16_gain() -> float:
    """How many times as quick as in float32 this processor trains a feed-forward layer in bfloat16.

    Measured once in a process, in some 50 ms: processors that have the instructions differ, from 0.6 times (without
    AMX) to 4 times. The quickest of a few runs each, which other work on the machine does not make quicker.
    """
    with torch.random.fork_rng(devices=[]):  # the numbers that training draws stay what they are
        layers = nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH))
        rows = torch.randn(_ROWS, _WIDTH)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for attempt in range(_TIMES + 1):  # the first of each prepares its kernels
        for in_bfloat16, found in seconds.items():
            began = time.perf_counter()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_bfloat16):
                loss = functional.mse_loss(layers(rows).float(), rows)
            loss.backward()
            if attempt:
                found.append(time.perf_counter() - began)
    return min(seconds[False]) / min(seconds[True])
