"""The last layer of a decoder: behind its attention, only places that are read are of interest.

Its perceptron is a function of each token alone, in every architecture there is, and some three quarters of a layer's
multiply-adds. What it would have added elsewhere is left out: nothing looks there.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from workers.packing import Places

_NAME = "mlp"  # of a layer's perceptron, as transformers names it


class LastLayer:
    """layer: the last one. Where it has no perceptron by that name, everything is computed."""

    def __init__(self, layer: nn.Module) -> None:
        self._wanted: Tensor | None = None
        self._shape: torch.Size | None = None
        perceptron = getattr(layer, _NAME, None)
        if isinstance(perceptron, nn.Module):
            perceptron.register_forward_pre_hook(self._narrow)
            perceptron.register_forward_hook(self._widen)

    @contextmanager
    def reading(
        self, places: Iterable[tuple[int, Places]], shape: torch.Size, device: torch.device
    ) -> Iterator[None]:
        """Within, the perceptron sees these places only. places: a row, and where in it. shape: [rows, longest].

        Without gradients only: training checkpoints layers, and computes them again when no one reads.
        """
        if not torch.is_grad_enabled():
            flat = [torch.from_numpy(at) + row * shape[1] for row, at in places]
            self._wanted = torch.cat(flat).unique().to(device)
        try:
            yield
        finally:
            self._wanted = None

    def _narrow(self, module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self._wanted is None:
            return None
        states, *rest = given
        self._shape = states.shape
        return states.flatten(0, 1)[self._wanted].unsqueeze(0), *rest

    def _widen(self, module: nn.Module, given: tuple[Any, ...], out: Any) -> Any:
        if self._wanted is None or self._shape is None:
            return None
        whole = out.new_zeros(self._shape[0] * self._shape[1], out.shape[-1])
        whole[self._wanted] = out.squeeze(0)
        return whole.view(*self._shape[:2], -1)
