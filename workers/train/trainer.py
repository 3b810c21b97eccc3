"""The training loop of a reward model. It can stop after every step, and a resumed training has the same losses."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError
from workers.models import RewardModel
from workers.objectives import Examples
from workers.schema.recipe import Recipe
from workers.train.batches import (
    TrainingBatch,
    epoch_batches,
    example_indices,
    make_groups,
    micro_batches,
    split_groups,
)
from workers.train.checkpoints import save_checkpoint, state_to_resume
from workers.train.distributed.group import ProcessGroup
from workers.train.events import Report
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.optimiser import make_optimiser, set_learning_rate, uses_bfloat16

_LOG_SECONDS = 1.0
_TOLERANCE = 0.5  # standard errors
_MIN_VALIDATION_RECORDS = 50  # with fewer, the validation loss does not show reliably when to stop
# Without reliable validation: the share of the recipe's epochs, and the least number of epochs, before it may stop.
_MIN_EPOCH_FRACTION, _MIN_EPOCHS = 0.4, 8


class TrainingStopped(Exception):
    """The training was asked to stop; it has written a checkpoint."""


@dataclass(frozen=True)
class TrainingLimits:
    """stop: polled after every step. seconds: of training, over all attempts. checkpoints: None writes none."""

    stop: Callable[[], bool] = lambda: False
    seconds: float | None = None
    checkpoints: Path | None = None


@dataclass
class RewardTrainer:
    """One training of one model. `losses` has one number for every step, over all attempts.

    Early stopping (`patience`) needs enough validation records to be reliable; the weights with the best validation
    loss are then kept. With fewer records, a minimum of epochs is trained, and more for as long as each validation loss
    is the lowest so far; the last weights are kept. On models of the sample world (50 to 100 comparisons), early
    stopping by 1 to 18 records made the mean accuracy 2 to 4 points lower, and the worst 10 to 17.
    """

    module: MultiObjectiveModule
    recipe: Recipe
    validation: Examples
    seed: int
    report: Report
    cache: Any = None
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    process_group: ProcessGroup = field(default_factory=ProcessGroup)
    losses: list[float] = field(default_factory=list)
    step: int = 0
    patience_count: int = 0  # validations since the best that were worse
    best: dict[str, Any] | None = None
    lowest_validation_loss: float | None = None  # without reliable validation: of all validations
    improved_last: bool = False  # whether the last validation had that loss
    elapsed: float = 0.0
    micro_tokens: int = 0  # tokens in one forward pass; halved after memory ran out

    def __post_init__(self) -> None:
        self.device = self.model.backbone.device
        self.model.backbone.in_bfloat16 = uses_bfloat16(self.recipe, self.device)
        self.micro_tokens = self.micro_tokens or self.recipe.micro_tokens
        self.model.backbone.prepare(self.examples.rendered)
        self.process_group.shard(self.model, self.model.backbone.blocks())
        self.optimiser = make_optimiser(self.module, self.recipe)
        self.trainable = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        groups = make_groups(self.examples, self.model.backbone, self.recipe)
        self.batches: list[TrainingBatch] = []
        self.validation_steps: set[int] = set()  # validate once this many steps are done
        self.has_reliable_validation = (
            not self.recipe.patience or len(self.validation) >= _MIN_VALIDATION_RECORDS
        )
        self.earliest_stop_step = 0  # without reliable validation; 0: not before all steps are done
        for epoch in range(self.recipe.epochs):
            min_epochs = max(_MIN_EPOCHS, round(_MIN_EPOCH_FRACTION * self.recipe.epochs))
            if not self.has_reliable_validation and epoch == min_epochs:
                self.earliest_stop_step = len(self.batches)
            batches = epoch_batches(groups, self.recipe, seed=self.seed, epoch=epoch)
            start, parts = len(self.batches), self.recipe.evaluations_per_epoch
            self.validation_steps |= {
                start + round(len(batches) * part / parts) for part in range(1, parts + 1)
            }
            self.batches += batches

    @property
    def model(self) -> RewardModel:
        return self.module.model

    @property
    def examples(self) -> Examples:
        return self.module.examples

    def run(self) -> None:
        """Train until the last step or until early stopping. Raises TrainingStopped, RewardError."""
        self._fill_cache()
        torch.manual_seed(self.seed)
        self._resume()
        started, saved, logged = time.monotonic(), time.monotonic(), (time.monotonic(), 0)
        before, done = self.elapsed, 0
        while self.step < len(self.batches) and not self._should_stop():
            batch = self.batches[self.step]
            rate = set_learning_rate(self.optimiser, self.step, len(self.batches), self.recipe.warmup)
            self.losses.append(self._train_step(batch))
            self.step += 1
            done += _example_count(batch)
            now = time.monotonic()
            self.elapsed = before + now - started
            validated = (
                self._validate() if self.step in self.validation_steps and len(self.validation) else None
            )
            if validated or self.step == len(self.batches) or now - logged[0] >= _LOG_SECONDS:
                speed = (done - logged[1]) / max(1e-9, now - logged[0])
                logged = (now, done)
                self._log_step(rate, speed, validated)
            stop, save, self.elapsed = self.process_group.all_reduce_max(
                self.limits.stop(), now - saved >= self.recipe.checkpoint_seconds, self.elapsed
            )
            if stop or save:
                self._save()
                saved = time.monotonic()
            if stop:
                raise TrainingStopped
        self._save()  # a run that is resumed during its evaluation then does not train again
        if self.best is not None:
            self.process_group.load_weights(self.model, self.best["weights"])
        self.model.eval()

    def _fill_cache(self) -> None:
        if self.cache is None:
            return
        logged = time.monotonic()
        rendered = [*self.examples.rendered, *self.module.criteria.values(), *self.validation.rendered]
        for done in self.model.encode_ahead(rendered, self.cache):
            if self.limits.stop():
                raise TrainingStopped
            if time.monotonic() - logged >= _LOG_SECONDS:
                self.report(message=f"encoded {done} chunks")
                logged = time.monotonic()

    def _should_stop(self) -> bool:
        if self.recipe.patience and self.patience_count >= self.recipe.patience:
            self.report(
                message=f"stopped early: the validation loss has not improved {self.patience_count} times"
            )
            return True
        if 0 < self.earliest_stop_step <= self.step and not self.improved_last:
            self.report(
                message=f"stopped after {self.step} of {len(self.batches)} steps: {len(self.validation)} validation "
                f"records are too few for early stopping ({_MIN_VALIDATION_RECORDS} are enough)"
            )
            return True
        if self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
            self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
            return True
        return False

    def _train_step(self, batch: TrainingBatch) -> float:
        """One optimiser step; its loss. Out of memory: from then on half as many tokens in one forward pass."""
        self.module.train()
        state = torch.get_rng_state()
        own_groups = batch[self.process_group.rank :: self.process_group.world_size]
        if self.micro_tokens < self.recipe.micro_tokens:
            own_groups = split_groups(own_groups, self.examples, self.model.backbone, self.micro_tokens)
        while True:
            self.optimiser.zero_grad(set_to_none=True)
            try:
                loss = self._backward(micro_batches(own_groups, self.micro_tokens), batch)
                break
            except torch.OutOfMemoryError:
                own_groups = self._halve_micro_batch(own_groups)
                torch.set_rng_state(state)
        self.process_group.all_reduce_gradients(
            [parameter for parameter in self.module.parts.parameters() if parameter.requires_grad]
        )
        self.process_group.clip_gradients(self.trainable, self.recipe.clip_norm)
        self.optimiser.step()
        return loss

    def _backward(self, parts: list[TrainingBatch], batch: TrainingBatch) -> float:
        """Adds up the gradients of the micro batches; the batch's loss. All ranks run equally many forward passes."""
        batch_size = _example_count(batch)
        (passes,) = self.process_group.all_reduce_max(len(parts))
        total = 0.0
        for index in range(int(passes)):
            part = parts[index] if index < len(parts) else None
            try:
                loss = self.module(example_indices(part or batch[:1]), batch_size, self.cache)
            except RewardError as error:
                raise RewardError(f"at step {self.step + 1}: {error.message}") from None
            # FSDP takes the mean over ranks; a rank without a micro batch left adds nothing.
            (loss * (self.process_group.world_size if part is not None else 0.0)).backward()
            total += float(loss.detach()) if part is not None else 0.0
        return self.process_group.all_reduce_sum(total)

    def _halve_micro_batch(self, groups: TrainingBatch) -> TrainingBatch:
        is_smallest = all(len(group.examples) == 1 for group in groups) and self.micro_tokens == 1
        if self.process_group.world_size > 1 or is_smallest:
            raise RewardError(
                "one comparison alone does not fit into memory; lower max_tokens, or turn gradient_checkpointing on."
                if self.process_group.world_size == 1
                else "memory ran out on one of several processes; lower micro_tokens."
            ) from None
        largest = max(sum(group.cost for group in part) for part in micro_batches(groups, self.micro_tokens))
        self.micro_tokens = max(1, min(self.micro_tokens, largest) // 2)
        self.report(
            message=f"out of memory: from now on {self.micro_tokens} tokens are computed in one forward pass"
        )
        return split_groups(groups, self.examples, self.model.backbone, self.micro_tokens)

    def _validate(self) -> dict[str, float]:
        """Validation metrics. Keeps the weights with the best loss, or with one that is not clearly worse."""
        metrics: dict[str, float]
        metrics, losses = self.process_group.broadcast(
            self.module.validation_metrics(self.validation, self._validation_parts(), self.cache)
        )
        if not metrics:
            return {}
        loss = metrics["loss"]
        if not self.has_reliable_validation:
            self.improved_last = self.lowest_validation_loss is None or loss <= self.lowest_validation_loss
            self.lowest_validation_loss = loss if self.improved_last else self.lowest_validation_loss
            return metrics
        if self.best is None or loss < self.best["loss"]:
            self.best = {"loss": loss, "losses": losses, "step": self.step}
            self.best["weights"] = self.process_group.trained_weights(self.model)
            self.patience_count = 0
        elif "losses" in self.best and is_not_clearly_worse(losses, self.best["losses"]):
            # Checkpoints of earlier versions have no `losses`.
            self.best |= {"step": self.step, "weights": self.process_group.trained_weights(self.model)}
        else:
            self.patience_count += 1
        return metrics

    def _validation_parts(self) -> list[list[int]]:
        groups = make_groups(self.validation, self.model.backbone, self.recipe)
        return [example_indices(part) for part in micro_batches(groups, self.micro_tokens)]

    def _log_step(self, rate: float, speed: float, validated: dict[str, float] | None) -> None:
        event: dict[str, Any] = {
            "step": self.step,
            "loss": self.losses[-1],
            "learning_rate": rate,
            "pairs_per_second": speed,
            "progress": {"done": self.step, "total": len(self.batches)},
        }
        self.report(**event | ({"validation": validated} if validated else {}))

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = {name: getattr(self, attribute) for name, attribute in _CHECKPOINT_KEYS.items()} | {
            "weights": self.process_group.trained_weights(self.module),
            "optimiser": self.process_group.optimiser_state(self.module, self.optimiser),
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
            "examples": len(self.examples),
        }
        if self.process_group.is_main_process:
            save_checkpoint(self.limits.checkpoints, self.step, state)

    def _resume(self) -> None:
        state = state_to_resume(self.limits.checkpoints, len(self.examples), self.report)
        if state is None:
            return
        self.process_group.load_weights(self.module, state["weights"])
        self.process_group.load_optimiser(self.module, self.optimiser, state["optimiser"])
        torch.set_rng_state(state["random"])
        if state["cuda_random"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"], self.device)
        state = {"lowest": None, "falls": False} | state  # checkpoints of earlier versions have neither
        for name, attribute in _CHECKPOINT_KEYS.items():
            setattr(self, attribute, state[name])
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")


# Names in checkpoints, and the attributes they are of: checkpoints keep the names they always had.
_CHECKPOINT_KEYS = {name: name for name in ("losses", "step", "best", "elapsed", "micro_tokens")} | {
    "bad": "patience_count",
    "lowest": "lowest_validation_loss",
    "falls": "improved_last",
}


def is_not_clearly_worse(losses: Tensor, best_losses: Tensor) -> bool:
    """Whether the paired difference of the losses is within half a standard error. [n] each, of the same records.

    The lowest of a few noisy validation losses often comes before anything was learnt. The one-standard-error rule of
    Breiman et al. (1984), section 3.4.3, for the number of steps; half of one, since later is not simpler.
    """
    difference = losses - best_losses
    if len(difference) < 2:
        return False
    return bool(difference.mean() <= _TOLERANCE * difference.std() / len(difference) ** 0.5)


def _example_count(batch: TrainingBatch) -> int:
    return len(example_indices(batch))
