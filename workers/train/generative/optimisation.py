"""The optimiser of a generative model's training."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from workers.schema.recipe import Recipe
from workers.train.optimiser import rate_factor


def trainable(language: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in language.parameters() if parameter.requires_grad]


def new_optimiser(parameters: Iterable[nn.Parameter], recipe: Recipe, rate: float) -> torch.optim.AdamW:
    """AdamW, whose weight decay leaves vectors alone."""
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in parameters:
        (matrices if parameter.ndim >= 2 else vectors).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=rate, fused=True)


def set_rate(
    optimiser: torch.optim.Optimizer, peak: float, recipe: Recipe, *, step: int, total: int
) -> float:
    """The learning rate of this step of a stage of so many."""
    rate = peak * rate_factor(step, total, recipe.warmup)
    for group in optimiser.param_groups:
        group["lr"] = rate
    return rate
