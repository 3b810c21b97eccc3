"""From the numbers of a picture's cells to a place in the mixer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.models.backbones.picture_statistics import CELLS

_INNER = 64  # numbers that a cell is brought down to, the same way for each
_FURTHEST = 4.0  # standard deviations: a picture unlike all others moves nothing by more


class PictureProjection(nn.Module):
    """Two layers: of each cell, then of all cells of a picture, so that it matters where something is.

    mean, std: [cells, size], of the pictures of the training; numbers of an encoder have scales of their own, and those
    of small scale would hardly be learnt from.
    """

    def __init__(self, size: int, width: int, dropout: float) -> None:
        super().__init__()
        self.cell = nn.Linear(size, _INNER)
        self.whole = nn.Linear(CELLS * _INNER, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mean", torch.zeros(CELLS, size))
        self.register_buffer("std", torch.zeros(CELLS, size))

    @property
    def is_fitted(self) -> bool:
        std: Any = self.std
        return bool((std > 0).any())

    def fit_scale(self, cells: Tensor) -> None:
        """cells: [pictures, CELLS, size]."""
        mean, std = cells.mean(0), cells.std(0, correction=0)
        # One that is all but constant says nothing; its rounding is not to be made large.
        std = torch.where(std > 1e-4 * (1 + mean.abs()), std, torch.inf)
        with torch.no_grad():
            self.mean.copy_(mean)  # type: ignore[operator]
            self.std.copy_(std)  # type: ignore[operator]

    def forward(self, cells: Tensor) -> Tensor:
        """[pictures, width] of [pictures, CELLS, size]."""
        std: Any = self.std
        scale = std if self.is_fitted else torch.ones_like(std)
        mean: Any = self.mean
        scaled = ((cells - mean) / scale).clamp(-_FURTHEST, _FURTHEST)
        inner = functional.gelu(self.cell(scaled))
        found: Tensor = self.whole(self.dropout(inner.flatten(1)))
        return found
