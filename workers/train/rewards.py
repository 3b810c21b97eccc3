"""Raw rewards of rendered trajectories, as a training computes them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError
from workers.models import RewardModel

_TOKENS = 16_384  # in a batch


@torch.no_grad()
def measured_rewards(model: RewardModel, rendered: Sequence[Any], *, cache: Any = None) -> Tensor:
    """[trajectories], the mean over heads, without dropout."""
    model.eval()
    found: list[Tensor] = []
    batch: list[Any] = []
    used = 0
    for one in [*rendered, None]:
        if batch and (one is None or used + one.tokens > _TOKENS):
            found.append(model(batch, cache=cache).rewards.mean(-1).cpu())
            batch, used = [], 0
        if one is not None:
            batch.append(one)
            used += one.tokens
    return torch.cat(found) if found else torch.empty(0)


def reward_statistics(model: RewardModel, rendered: Sequence[Any], *, cache: Any = None) -> dict[str, float]:
    """Median and standard deviation of the raw reward over the distinct training trajectories.

    In the precision of training: rounding moves single rewards, hardly their median and spread. Raises RewardError
    where all are the same.
    """
    raw = measured_rewards(model, rendered, cache=cache).double()
    std = float(raw.std(correction=0))
    if not std > 1e-6:
        raise RewardError(
            "the trained model gives every training trajectory the same reward; train longer, or with a higher "
            "learning rate."
        )
    return {"median": float(raw.quantile(0.5)), "std": std}
