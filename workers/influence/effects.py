"""By how much each example of a training moved a number that the trained model says: influence functions.

Koh and Liang (2017), "Understanding Black-box Predictions via Influence Functions", equation 2, on the parameters of
one layer, the others held still: gradients are compared in the metric of the loss's curvature.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

DAMPING = 0.1  # of the mean curvature (Grosse et al., arXiv 2308.03296, section 2.2)
_LEAST = 1e-8  # curvature: where there is none, nothing moves far
_PROBES = 16
_STEPS = 100
_ENOUGH = 1e-4  # of the residual, as a share of what it began with
Losses = Callable[[], Tensor]


def effects(
    parameter: Tensor,
    number: Tensor,
    parts: Sequence[Losses],
    *,
    curvature_parts: Sequence[Losses] = (),
    damping: float = DAMPING,
    ridge: float | None = None,
) -> Tensor:
    """[examples]: by how much `number` is higher for each example being there, to first order.

    parameter: what was trained, the same tensor in everything below. number: a scalar computed from it. parts: each
    computes the losses [n] of some examples, in order; the mean of all was made small. curvature_parts: those whose
    curvature stands for that of all, all without. damping: added to the curvature, as a share of its mean.
    """
    (gradient,) = torch.autograd.grad(number, parameter)

    def hessian_product(direction: Tensor) -> Tensor:
        """The Hessian of the mean loss times a direction."""
        total, count = torch.zeros_like(direction), 0
        for part in curvature_parts or parts:
            losses = part()
            slope = _slope(losses.sum(), parameter)
            count += len(losses)
            if slope.requires_grad:
                total += _slope((slope * direction).sum(), parameter, again=False)
        return total / count

    added = damping * max(_mean_curvature(hessian_product, parameter), _LEAST) if ridge is None else ridge
    direction = _solved(lambda vector: hessian_product(vector) + added * vector, gradient)
    slopes = torch.cat([_along(part, parameter, direction) for part in parts])
    return -slopes / len(slopes)


def _along(part: Losses, parameter: Tensor, direction: Tensor) -> Tensor:
    """[n]: the slope of each loss along a direction, all at once."""
    losses = part()
    weights = torch.ones_like(losses, requires_grad=True)
    slope = _slope((weights * losses).sum(), parameter)
    if not slope.requires_grad:
        return torch.zeros_like(losses)
    return _slope((slope * direction).sum(), weights, again=False)


def _slope(value: Tensor, parameter: Tensor, *, again: bool = True) -> Tensor:
    """Zero where the value does not depend on it. again: it is differentiated once more."""
    (found,) = torch.autograd.grad(
        value, parameter, create_graph=again, allow_unused=True, materialize_grads=True
    )
    return found


def _mean_curvature(hessian_product: Callable[[Tensor], Tensor], like: Tensor) -> float:
    """The mean of the diagonal, by Hutchinson's probes."""
    generator = torch.Generator().manual_seed(0)
    found = 0.0
    for _ in range(_PROBES):
        probe = (torch.randint(0, 2, like.shape, generator=generator) * 2 - 1).to(like)
        found += float((probe * hessian_product(probe)).sum()) / like.numel()
    return found / _PROBES


def _solved(hessian_product: Callable[[Tensor], Tensor], target: Tensor) -> Tensor:
    """Conjugate gradients (Hestenes and Stiefel 1952). Stops where the curvature turns negative: from there on it is
    no minimum, and the direction so far is as good as it gets."""
    found, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), float((residual * residual).sum())
    began = size
    for _ in range(_STEPS):
        if size <= _ENOUGH**2 * began or size == 0.0:
            break
        product = hessian_product(direction)
        curvature = float((direction * product).sum())
        if curvature <= 0:
            break
        length = size / curvature
        found, residual = found + length * direction, residual - length * product
        new = float((residual * residual).sum())
        direction, size = residual + (new / size) * direction, new
    return found
