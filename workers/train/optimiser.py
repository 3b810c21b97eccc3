"""AdamW with warm-up and cosine."""

import math

import torch
from torch import nn

from workers.schema.recipe import Recipe
from workers.train.multi_objective import MultiObjectiveModule

# Of what an objective learns next to the model: thresholds, scales, reliabilities. Few numbers, each in every example,
# in logits whatever the model is; at a model's own rate a careless annotator would be believed to the end.
_BESIDE_RATE = 0.03


def make_optimiser(module: MultiObjectiveModule, recipe: Recipe) -> torch.optim.AdamW:
    """No weight decay on vectors and scalars (biases, norms, thresholds)."""
    rates: dict[tuple[float, float], list[nn.Parameter]] = {}
    backbone = module.model.backbone
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            inside = name.removeprefix("model.backbone.")
            is_encoder = inside != name and backbone.is_encoder(inside)
            rate = recipe.encoder_learning_rate if is_encoder else recipe.learning_rate
            rate *= backbone.rate_factor(inside) if inside != name else 1.0
            rate = _BESIDE_RATE if name.startswith("parts.") else rate
            decay = recipe.weight_decay if parameter.ndim >= 2 else 0.0
            rates.setdefault((rate, decay), []).append(parameter)
    groups = [
        {"params": found, "peak": rate, "weight_decay": decay} for (rate, decay), found in rates.items()
    ]
    return torch.optim.AdamW(groups, lr=0.0, fused=True)


def set_learning_rate(optimiser: torch.optim.Optimizer, step: int, total: int, warmup: float) -> float:
    """For step 0..total-1. Returns that of the first group."""
    factor = rate_factor(step, total, warmup)
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * factor
    return float(optimiser.param_groups[0]["lr"])


def rate_factor(step: int, total: int, warmup: float) -> float:
    """Of the peak: it rises in the first `warmup` of all steps, then falls by a cosine."""
    rising = max(1, round(total * warmup))
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, total - rising)))
