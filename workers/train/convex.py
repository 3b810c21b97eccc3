"""The fit of a linear model: convex losses and a ridge penalty, to their minimum, in seconds.

L-BFGS (Liu and Nocedal 1989) over all examples at once. The penalty is chosen by cross-validation over tasks within the
training data. The heads then are draws from the Laplace approximation of the posterior (MacKay 1992): the mean over the
heads is the fit, and their spread is what the data leave open.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError
from workers.models.backbones.linear import LinearBackbone, centred
from workers.objectives import Examples
from workers.schema.task_folds import task_folds
from workers.train.convex_memory import check_memory
from workers.train.early_stopping import EarlyStopping
from workers.train.limits import LOG_SECONDS, TrainingStopped
from workers.train.training import Training

# Standard deviations of the prior of a weight, squared: from all but nothing to be learnt, to all but no penalty.
VARIANCES = (0.0003, 0.003, 0.03, 0.3, 3.0)
DEFAULT_VARIANCE = 0.3  # where there are too few tasks to choose by
_FEWEST_TASKS, _FOLDS, _MOST_CHOOSING = 10, 3, 5_000
_STEPS, _CHOOSING_STEPS = 200, 60
_TOLERANCE, _CHOOSING_TOLERANCE = 1e-10, 1e-5
_LEAST_STEPS = 10  # of the last fit, whatever the budget: weights that mean something
_NEAR = 2  # stronger penalties that are tried next to the best one
_DRAW_STEPS, _DRAW_TOLERANCE = 100, 0.02


class _BudgetReached(Exception):
    pass


@dataclass(frozen=True, slots=True)
class ChosenPenalty:
    """variance: of the prior of a weight, 1 / the ridge penalty."""

    variance: float
    embedding_weight: float


@dataclass(frozen=True, slots=True)
class HeldOutFit:
    """A fit without some of the examples, with the penalty that was chosen. held_out: the indices of these."""

    held_out: Sequence[int]
    embedding_weight: float
    values: Sequence[Tensor]


@dataclass
class ConvexTrainer(Training):
    """One fit of one model. step, losses: of L-BFGS, over the whole fit. fold_fits: those that the penalty was chosen
    by, with the chosen one; none where nothing was chosen. penalty: the one to take; None has it chosen."""

    fold_fits: Sequence[HeldOutFit] = ()
    penalty: ChosenPenalty | None = None

    def __post_init__(self) -> None:
        if self.process_group.world_size > 1:
            raise RewardError(
                "a linear model is fitted by one process; set `processes` to 1.", pointer="/processes"
            )
        self.model, self.examples = self.module.model, self.module.examples
        self.early_stopping = EarlyStopping(0, len(self.validation))  # a convex fit has none
        self.batches: Sequence[Any] = range(_STEPS)
        self._started = self._logged = time.monotonic()
        self._lowest = math.inf  # loss on held-out tasks

    @property
    def backbone(self) -> LinearBackbone:
        backbone = self.model.backbone
        assert isinstance(backbone, LinearBackbone)
        return backbone

    @property
    def plan(self) -> str:
        """For the log."""
        return f"at most {_STEPS} steps of L-BFGS, after the choice of a ridge penalty"

    def run(self) -> None:
        """Raises TrainingStopped, RewardError."""
        self.module.cpu()  # where sparse products are; a frozen encoder, which is no part of the module, stays
        if self.cache is None:
            self.cache = self.model.new_cache(0)
        rendered = [*self.examples.rendered, *self.module.criteria.values(), *self.validation.rendered]
        self.limits.run_encoding(self._encode_ahead(rendered), self.report)
        self.backbone.prepare_with(self.examples.rendered, self.cache)
        self.module.double().train()
        drawn = self.module.bootstrap
        try:
            self._fit_and_draw(drawn)
        except _BudgetReached:
            self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
        finally:
            self.module.bootstrap = drawn
        self.elapsed = time.monotonic() - self._started
        self.batches = range(self.step)
        event: dict[str, Any] = {"step": self.step, "loss": self.losses[-1] if self.losses else None}
        if len(self.validation):
            event["validation"] = self._validation(self.validation, range(len(self.validation)))
        self.report(**event, progress={"done": self.step, "total": self.step})
        self.model.eval()

    def _encode_ahead(self, rendered: Sequence[Any]) -> Iterator[int]:
        """Raises RewardError where memory will not do."""
        for done in self.model.encode_ahead(rendered, self.cache):
            # A comparison has two trajectories; longer rankings are few.
            check_memory(self.cache, rendered, self.backbone.readout, 2 * _MOST_CHOOSING)
            yield done

    def _fit_and_draw(self, drawn: Tensor) -> None:
        """drawn: the bootstrap samples of the heads. Raises _BudgetReached, with the best weights so far."""
        self.module.bootstrap = torch.ones_like(drawn)
        begun, weight = self._values(), self.backbone.embedding_weight
        try:
            variance = self._choose_variance()
        except _BudgetReached:
            self._set(begun)
            self.backbone.embedding_weight, variance = weight, DEFAULT_VARIANCE
            self.report(
                message=f"the budget of {self.limits.seconds:g} seconds left no time to choose a penalty"
            )
        self.backbone.penalty = 1 / variance
        self._fit(range(len(self.examples)), variance, _STEPS, _TOLERANCE, is_last=True)
        if drawn.shape[1] > 1:
            self._draw_heads(drawn, variance)

    def set_fit(self, fit: HeldOutFit) -> None:
        """Give the model the weights of this fit."""
        self._set(fit.values)
        self.backbone.embedding_weight = fit.embedding_weight

    def _parameters(self) -> list[Tensor]:
        return [self.backbone.weight, self.backbone.intercept, *self.module.parts.parameters()]

    def _fit(
        self, indices: Sequence[int], variance: float, steps: int, tolerance: float, *, is_last: bool = False
    ) -> None:
        """Minimise the mean loss of these examples and the penalty, from the weights as they are.

        tolerance: of the loss, from one step to the next.
        """
        parameters, weight = self._parameters(), self.backbone.weight
        ridge = 1 / (variance * len(indices))
        chosen = self.module.choose(indices)
        optimiser = torch.optim.LBFGS(
            parameters,
            max_iter=steps,
            history_size=10,
            tolerance_grad=1e-7,
            tolerance_change=tolerance,
            line_search_fn="strong_wolfe",
        )

        best: tuple[float, list[Tensor]] | None = None

        def loss() -> Tensor:
            nonlocal best
            self._check(has_budget=not is_last or self.step >= _LEAST_STEPS)
            optimiser.zero_grad()
            value: Tensor = self.module(chosen, len(indices), self.cache) + ridge / 2 * weight.square().sum()
            value.backward()
            if is_last:
                reached = float(value.detach())
                if self.limits.seconds is not None and (best is None or reached < best[0]):
                    best = reached, self._values()
                self._log(reached, steps)
            return value

        try:
            optimiser.step(loss)
        except _BudgetReached:
            if best is not None:  # not where a line search happened to be
                self._set(best[1])
            raise

    def _log(self, loss: float, steps: int) -> None:
        self.step += 1
        self.losses.append(loss)
        if time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            self.report(step=self.step, loss=loss, progress={"done": min(self.step, steps), "total": steps})

    def _check(self, *, has_budget: bool = True) -> None:
        if self.limits.stop():
            raise TrainingStopped
        if (
            has_budget
            and self.limits.seconds is not None
            and time.monotonic() - self._started > self.limits.seconds
        ):
            raise _BudgetReached

    def _choose_variance(self) -> float:
        """That of the lowest mean loss on held-out tasks. Once a weaker penalty is worse, weaker ones are not tried.

        The weight of the embeddings is chosen with it, and the backbone then has it.
        """
        backbone = self.backbone
        if self.penalty is not None:
            backbone.embedding_weight = self.penalty.embedding_weight
            return self.penalty.variance
        indices = spread(range(len(self.examples)), _MOST_CHOOSING)
        task = [self.examples.items[index].task for index in indices]
        if len(set(task)) < _FEWEST_TASKS:
            return DEFAULT_VARIANCE
        fold_of = task_folds(task, _FOLDS)
        folds = [
            [index for index, own in zip(indices, fold_of, strict=True) if own == fold]
            for fold in range(_FOLDS)
        ]
        losses: dict[tuple[float, float], float] = {}
        begun = self._values()
        variances: Sequence[float] = VARIANCES
        for weight in backbone.embedding_weights:
            backbone.embedding_weight = weight
            found = self._losses_by_variance(folds, begun, variances)
            # With a larger weight, the best penalty is about the same one.
            variances = variances[max(0, variances.index(min(found, key=lambda key: found[key])) - _NEAR) :]
            losses |= {(weight, variance): loss for variance, loss in found.items()}
        for parameter in self._parameters():
            parameter.grad = None
        backbone.embedding_weight, best = min(losses, key=lambda choice: losses[choice])
        is_hybrid = len(backbone.embedding_weights) > 1
        tried = ", ".join(
            f"{1 / variance:g}{f' and {weight:g}' if is_hybrid else ''}: {loss:.4f}"
            for (weight, variance), loss in losses.items()
        )
        chosen = f"ridge penalty {1 / best:g}"
        chosen += f" and embedding weight {backbone.embedding_weight:g}" if is_hybrid else ""
        self.report(message=f"{chosen}, by the loss on held-out tasks ({tried})")
        return best

    def _losses_by_variance(
        self, folds: Sequence[Sequence[int]], begun: Sequence[Tensor], variances: Sequence[float]
    ) -> dict[float, float]:
        """The mean loss on examples of held-out folds, for each variance that was tried, in their order."""
        start = [begun for _ in folds]
        count = sum(map(len, folds))
        losses: dict[float, float] = {}
        for variance in variances:
            losses[variance] = 0.0
            for fold, held_out in enumerate(folds):
                inside = [index for other in folds if other is not held_out for index in other]
                self._set(start[fold])
                self._fit(inside, variance, _CHOOSING_STEPS, _CHOOSING_TOLERANCE)
                found = self._validation(self.examples, held_out)
                losses[variance] += found.get("loss", 0.0) * len(held_out) / count
                start[fold] = self._values()  # the next penalty starts from here
            if losses[variance] < self._lowest:
                self._lowest = losses[variance]
                weight = self.backbone.embedding_weight
                self.fold_fits = [
                    HeldOutFit(fold, weight, values) for fold, values in zip(folds, start, strict=True)
                ]
            if losses[variance] > min(losses.values()):
                break
        return losses

    def _values(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self._parameters()]

    def _validation(self, examples: Examples, indices: Sequence[int]) -> dict[str, float]:
        found = self.module.validation_values(examples, indices, self.cache)
        self.module.train()
        return self.module.validation_metrics([found])[0]

    def _set(self, values: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self._parameters(), values, strict=True):
                parameter.copy_(value)

    def _draw_heads(self, drawn: Tensor, variance: float) -> None:
        """Deviations with the covariance (H + I / variance)^-1, H the Hessian of the sum of losses at the minimum.

        H^-1 times the gradient of a bootstrap sample's losses has H's part of it, where judgements of an item are drawn
        together, so that they do not count as so much evidence each.
        """
        try:
            deviations = self._drawn_deviations(drawn, variance)
        finally:
            self.backbone.deviations.requires_grad_(False)
        with torch.no_grad():
            self.backbone.deviations.copy_(torch.from_numpy(centred(deviations.numpy())))
            self.backbone.prior.fill_(variance**0.5)

    def _drawn_deviations(self, drawn: Tensor, variance: float) -> Tensor:
        """[known features, heads, outputs]. Leaves the deviations requiring gradients."""
        count, heads = len(self.examples), drawn.shape[1]
        every = self.module.choose(range(count))
        deviations = self.backbone.deviations.requires_grad_(True)

        def loss_gradient(bootstrap: Tensor, *, create_graph: bool) -> Tensor:
            """Of each head's sum of losses."""
            self._check()
            self.module.bootstrap = bootstrap
            total = self.module(every, count, self.cache) * (count * heads)
            (gradient,) = torch.autograd.grad(total, deviations, create_graph=create_graph)
            return gradient

        gradient = loss_gradient(torch.ones_like(drawn), create_graph=True)
        bootstrap_gradient = loss_gradient(drawn, create_graph=False)
        generator = torch.Generator().manual_seed(self.seed)
        standard = torch.randn(deviations.shape, generator=generator, dtype=torch.double)

        def hessian_product(direction: Tensor) -> Tensor:
            """Of the losses and the penalty."""
            self._check()
            (product,) = torch.autograd.grad(gradient, deviations, direction, retain_graph=True)
            return product + 1 / variance * direction

        return _conjugate_gradients(
            hessian_product, bootstrap_gradient - gradient.detach() + standard * variance**-0.5
        )


def _conjugate_gradients(hessian_product: Callable[[Tensor], Tensor], target: Tensor) -> Tensor:
    """x with hessian_product(x) = target, both [features, heads, outputs], for each head on its own (Hestenes, Stiefel
    1952)."""

    def dot(first: Tensor, second: Tensor) -> Tensor:
        return (first * second).sum((0, 2), keepdim=True)

    solution, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), dot(target, target)
    small_enough = _DRAW_TOLERANCE**2 * size
    for _ in range(_DRAW_STEPS):
        if bool((size <= small_enough).all()):
            break
        product = hessian_product(direction)
        length = size / dot(direction, product).clamp(min=1e-30)
        solution, residual = solution + length * direction, residual - length * product
        new_size = dot(residual, residual)
        direction, size = residual + new_size / size.clamp(min=1e-30) * direction, new_size
    return solution


def spread(indices: Sequence[int], most: int) -> Sequence[int]:
    """At most so many of them, from all over."""
    if len(indices) <= most:
        return indices
    return [indices[place * len(indices) // most] for place in range(most)]
