"""Draws from the Laplace approximation of the posterior of a linear model's weights (MacKay 1992)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.models.backbones.linear import LinearBackbone, centred
from workers.train.multi_objective import MultiObjectiveModule

_STEPS, _TOLERANCE = 100, 0.02


@dataclass(frozen=True)
class LaplaceDraws:
    """variance: of the prior of a weight. check: called between passes; may raise to stop."""

    module: MultiObjectiveModule
    backbone: LinearBackbone
    variance: float
    seed: int
    cache: Any
    check: Callable[[], None]

    def draw_heads(self, drawn: Tensor) -> None:
        """Give the heads deviations with the covariance (H + I / variance)^-1, H the Hessian of the sum of losses at
        the minimum, where the module is.

        H^-1 times the gradient of a bootstrap sample's losses has H's part of it, where judgements of an item are drawn
        together, so that they do not count as so much evidence each. drawn: [examples, heads], the bootstrap samples.
        Leaves its own bootstrap sample in the module.
        """
        try:
            deviations = self._deviations(drawn)
        finally:
            self.backbone.deviations.requires_grad_(False)
        with torch.no_grad():
            self.backbone.deviations.copy_(torch.from_numpy(centred(deviations.numpy())))
            self.backbone.prior.fill_(self.variance**0.5)

    def _deviations(self, drawn: Tensor) -> Tensor:
        """[known features, heads, outputs]. Leaves those of the backbone requiring gradients."""
        deviations = self.backbone.deviations.requires_grad_(True)
        gradient = self._loss_gradient(torch.ones_like(drawn), create_graph=True)
        bootstrap_gradient = self._loss_gradient(drawn, create_graph=False)
        generator = torch.Generator().manual_seed(self.seed)
        standard = torch.randn(deviations.shape, generator=generator, dtype=torch.double)

        def hessian_product(direction: Tensor) -> Tensor:
            """Of the losses and the penalty."""
            self.check()
            (product,) = torch.autograd.grad(gradient, deviations, direction, retain_graph=True)
            return product + 1 / self.variance * direction

        return _conjugate_gradients(
            hessian_product, bootstrap_gradient - gradient.detach() + standard * self.variance**-0.5
        )

    def _loss_gradient(self, bootstrap: Tensor, *, create_graph: bool) -> Tensor:
        """Of each head's sum of losses."""
        self.check()
        self.module.bootstrap = bootstrap
        count = len(self.module.examples)
        total = self.module(self.module.choose(range(count)), count, self.cache) * (
            count * bootstrap.shape[1]
        )
        (gradient,) = torch.autograd.grad(total, self.backbone.deviations, create_graph=create_graph)
        return gradient


def _conjugate_gradients(hessian_product: Callable[[Tensor], Tensor], target: Tensor) -> Tensor:
    """x with hessian_product(x) = target, both [features, heads, outputs], for each head on its own (Hestenes, Stiefel
    1952)."""

    def dot(first: Tensor, second: Tensor) -> Tensor:
        return (first * second).sum((0, 2), keepdim=True)

    solution, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), dot(target, target)
    small_enough = _TOLERANCE**2 * size
    for _ in range(_STEPS):
        if bool((size <= small_enough).all()):
            break
        product = hessian_product(direction)
        length = size / dot(direction, product).clamp(min=1e-30)
        solution, residual = solution + length * direction, residual - length * product
        new_size = dot(residual, residual)
        direction, size = residual + new_size / size.clamp(min=1e-30) * direction, new_size
    return solution
