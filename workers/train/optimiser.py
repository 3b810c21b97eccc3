"""AdamW with warm-up and cosine, and the precision a machine trains in."""

import math
from collections.abc import Iterator

import torch
from torch import nn

from workers.models import StepEncoder
from workers.schema.recipe import Recipe


def make_optimiser(model: StepEncoder, objective: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """No weight decay on vectors and scalars (biases, norms, thresholds)."""
    groups = []
    parts = [(model.mixer, recipe.learning_rate), (objective, recipe.learning_rate)]
    if recipe.unfrozen:
        parts.append((model.encoder, recipe.encoder_learning_rate))
    for module, rate in parts:
        matrices = [p for p in module.parameters() if p.requires_grad and p.ndim >= 2]
        vectors = [p for p in module.parameters() if p.requires_grad and p.ndim < 2]
        groups.append({"params": matrices, "peak": rate, "weight_decay": recipe.weight_decay})
        groups.append({"params": vectors, "peak": rate, "weight_decay": 0.0})
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0)


def set_learning_rate(optimiser: torch.optim.Optimizer, step: int, total: int, warmup: float) -> float:
    """For step 0..total-1. Returns that of the first group."""
    rising = max(1, round(total * warmup))
    if step < rising:
        factor = (step + 1) / rising
    else:
        factor = 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, total - rising)))
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * factor
    return float(optimiser.param_groups[0]["lr"])


def trainable(model: nn.Module, objective: nn.Module) -> Iterator[nn.Parameter]:
    for module in (model, objective):
        yield from (p for p in module.parameters() if p.requires_grad)


def uses_bfloat16(recipe: Recipe, device: torch.device) -> bool:
    """For `auto`: where the machine has instructions for it. Only the encoder computes in it, never the mixer."""
    if recipe.precision != "auto":
        return recipe.precision == "bfloat16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported())
