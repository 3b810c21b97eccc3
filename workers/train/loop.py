"""The training loop: from examples to a trained model, stoppable at every step and resumable with the same losses."""

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
from workers.train.batches import Batch, epoch_batches, examples_of, in_parts, make_groups, split
from workers.train.checkpoints import save_checkpoint, state_to_resume
from workers.train.distributed.group import ProcessGroup
from workers.train.events import Report
from workers.train.learner import Learner
from workers.train.optimiser import make_optimiser, set_learning_rate, uses_bfloat16

_LOG_SECONDS = 1.0
_TOLERANCE = 0.5  # standard errors
_MIN_VALIDATION = 50  # feedback records of validation: with fewer, their loss does not show when to stop
# Then training goes on for this share of the recipe's epochs, and for so many at least, before it may stop.
_SHARE_OF_EPOCHS, _MIN_EPOCHS = 0.4, 8


class Stopped(Exception):
    """Asked to stop; a checkpoint has been written."""


@dataclass(frozen=True)
class Limits:
    """stop: polled after every step. seconds: of training, over all attempts. checkpoints: None keeps none."""

    stop: Callable[[], bool] = lambda: False
    seconds: float | None = None
    checkpoints: Path | None = None


@dataclass
class Fit:
    """One training of one model. `losses` has one number for every step done, over all attempts.

    Validation tells when to stop, and which weights are kept. Where it holds too few judgements for that, so many
    epochs are trained, and more for as long as each measurement is the lowest yet; the last weights are kept. Of models
    of the sample world, 50 to 100 comparisons, early stopping by 1 to 18 judgements made the mean accuracy 2 to 4
    points lower, and the worst 10 to 17.
    """

    learner: Learner
    recipe: Recipe
    validation: Examples
    seed: int
    report: Report
    cache: Any = None
    limits: Limits = field(default_factory=Limits)
    process_group: ProcessGroup = field(default_factory=ProcessGroup)
    losses: list[float] = field(default_factory=list)
    step: int = 0
    bad: int = 0  # measurements since the lowest that were worse
    best: dict[str, Any] | None = None
    lowest: float | None = None  # where validation does not tell: of all measurements
    falls: bool = False  # and whether the last of them was it
    elapsed: float = 0.0
    micro_tokens: int = 0  # what goes through the model at once; less after memory ran out

    def __post_init__(self) -> None:
        self.device = self.model.backbone.device
        self.model.backbone.in_bfloat16 = uses_bfloat16(self.recipe, self.device)
        self.micro_tokens = self.micro_tokens or self.recipe.micro_tokens
        self.model.backbone.prepare(self.train.rendered)
        self.process_group.shard(self.model, self.model.backbone.blocks())
        self.optimiser = make_optimiser(self.learner, self.recipe)
        self.trained = [one for one in self.learner.parameters() if one.requires_grad]
        groups = make_groups(self.train, self.model.backbone, self.recipe)
        self.batches: list[Batch] = []
        self.measure_after: set[int] = set()  # steps done when validation is measured
        self.is_told = not self.recipe.patience or len(self.validation) >= _MIN_VALIDATION
        self.may_end = 0  # steps done by when it may end unless validation tells; 0: not before all are
        for epoch in range(self.recipe.epochs):
            if not self.is_told and epoch == max(_MIN_EPOCHS, round(_SHARE_OF_EPOCHS * self.recipe.epochs)):
                self.may_end = len(self.batches)
            batches = epoch_batches(groups, self.recipe, seed=self.seed, epoch=epoch)
            start, parts = len(self.batches), self.recipe.evaluations_per_epoch
            self.measure_after |= {start + round(len(batches) * part / parts) for part in range(1, parts + 1)}
            self.batches += batches

    @property
    def model(self) -> RewardModel:
        return self.learner.model

    @property
    def train(self) -> Examples:
        return self.learner.examples

    def run(self) -> None:
        """Train to the end, or to the best measurement where there is validation. Raises Stopped, RewardError."""
        self._encode_ahead()
        torch.manual_seed(self.seed)
        self._resume()
        started, saved, logged = time.monotonic(), time.monotonic(), (time.monotonic(), 0)
        before, done = self.elapsed, 0
        while self.step < len(self.batches) and not self._is_enough():
            batch = self.batches[self.step]
            rate = set_learning_rate(self.optimiser, self.step, len(self.batches), self.recipe.warmup)
            self.losses.append(self._train_step(batch))
            self.step += 1
            done += _size(batch)
            now = time.monotonic()
            self.elapsed = before + now - started
            measured = self._measure() if self.step in self.measure_after and len(self.validation) else None
            if measured or self.step == len(self.batches) or now - logged[0] >= _LOG_SECONDS:
                speed = (done - logged[1]) / max(1e-9, now - logged[0])
                logged = (now, done)
                self._say(rate, speed, measured)
            stop, save, self.elapsed = self.process_group.all_reduce_max(
                self.limits.stop(), now - saved >= self.recipe.checkpoint_seconds, self.elapsed
            )
            if stop or save:
                self._save()
                saved = time.monotonic()
            if stop:
                raise Stopped
        self._save()  # so that a run taken up again in its evaluation does not train anew
        if self.best is not None:
            self.process_group.load_weights(self.model, self.best["weights"])
        self.model.eval()

    def _encode_ahead(self) -> None:
        if self.cache is None:
            return
        said = time.monotonic()
        rendered = [*self.train.rendered, *self.learner.criteria.values(), *self.validation.rendered]
        for done in self.model.encode_ahead(rendered, self.cache):
            if self.limits.stop():
                raise Stopped
            if time.monotonic() - said >= _LOG_SECONDS:
                self.report(message=f"encoded {done} chunks")
                said = time.monotonic()

    def _is_enough(self) -> bool:
        if self.recipe.patience and self.bad >= self.recipe.patience:
            self.report(message=f"stopped early: validation has not improved {self.bad} times")
            return True
        if 0 < self.may_end <= self.step and not self.falls:
            self.report(
                message=f"stopped after {self.step} of {len(self.batches)} steps: {len(self.validation)} judgements of "
                f"validation do not tell more closely when to stop ({_MIN_VALIDATION} do)"
            )
            return True
        if self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
            self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
            return True
        return False

    def _train_step(self, batch: Batch) -> float:
        """One optimiser step. Out of memory: half as much goes through the model at once, from now on."""
        self.learner.train()
        state, mine = torch.get_rng_state(), batch[self.process_group.rank :: self.process_group.world_size]
        if self.micro_tokens < self.recipe.micro_tokens:
            mine = split(mine, self.train, self.model.backbone, self.micro_tokens)
        while True:
            self.optimiser.zero_grad(set_to_none=True)
            try:
                loss = self._backward(in_parts(mine, self.micro_tokens), batch)
                break
            except torch.OutOfMemoryError:
                mine = self._less(mine)
                torch.set_rng_state(state)
        self.process_group.all_reduce_gradients(
            [one for one in self.learner.parts.parameters() if one.requires_grad]
        )
        self.process_group.clip_gradients(self.trained, self.recipe.clip_norm)
        self.optimiser.step()
        return loss

    def _backward(self, parts: list[Batch], batch: Batch) -> float:
        """Adds up the gradients of a batch's parts; its loss. All ranks go through the model equally often."""
        whole = _size(batch)
        (count,) = self.process_group.all_reduce_max(len(parts))
        total = 0.0
        for place in range(int(count)):
            part = parts[place] if place < len(parts) else None
            try:
                loss = self.learner(examples_of(part or batch[:1]), whole, self.cache)
            except RewardError as error:
                raise RewardError(f"at step {self.step + 1}: {error.message}") from None
            # FSDP takes the mean over ranks; what a rank has no part of counts for nothing.
            (loss * (self.process_group.world_size if part is not None else 0.0)).backward()
            total += float(loss.detach()) if part is not None else 0.0
        return self.process_group.all_reduce_sum(total)

    def _less(self, mine: Batch) -> Batch:
        is_smallest = all(len(group.examples) == 1 for group in mine) and self.micro_tokens == 1
        if self.process_group.world_size > 1 or is_smallest:
            raise RewardError(
                "one comparison alone does not fit into memory; lower max_tokens, or turn gradient_checkpointing on."
                if self.process_group.world_size == 1
                else "memory ran out on one of several processes; lower micro_tokens."
            ) from None
        largest = max(sum(group.cost for group in part) for part in in_parts(mine, self.micro_tokens))
        self.micro_tokens = max(1, min(self.micro_tokens, largest) // 2)
        self.report(
            message=f"out of memory: from here on {self.micro_tokens} tokens go through the model at once"
        )
        return split(mine, self.train, self.model.backbone, self.micro_tokens)

    def _measure(self) -> dict[str, float]:
        """Validation; keeps the weights if they are the best so far, or not known to be worse than those."""
        measured: dict[str, float]
        measured, losses = self.process_group.broadcast(
            self.learner.measure(self.validation, self._validation_parts(), self.cache)
        )
        if not measured:
            return {}
        if not self.is_told:
            self.falls = self.lowest is None or measured["loss"] <= self.lowest
            self.lowest = measured["loss"] if self.falls else self.lowest
            return measured
        if self.best is None or measured["loss"] < self.best["loss"]:
            kept = {"step": self.step, "weights": self.process_group.trained_weights(self.model)}
            self.best = {"loss": measured["loss"], "losses": losses} | kept
            self.bad = 0
        elif "losses" in self.best and is_as_good(
            losses, self.best["losses"]
        ):  # checkpoints of before have none
            self.best |= {"step": self.step, "weights": self.process_group.trained_weights(self.model)}
        else:
            self.bad += 1
        return measured

    def _validation_parts(self) -> list[list[int]]:
        groups = make_groups(self.validation, self.model.backbone, self.recipe)
        return [examples_of(part) for part in in_parts(groups, self.micro_tokens)]

    def _say(self, rate: float, speed: float, measured: dict[str, float] | None) -> None:
        event: dict[str, Any] = {
            "step": self.step,
            "loss": self.losses[-1],
            "learning_rate": rate,
            "pairs_per_second": speed,
            "progress": {"done": self.step, "total": len(self.batches)},
        }
        self.report(**event | ({"validation": measured} if measured else {}))

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = {
            "weights": self.process_group.trained_weights(self.learner),
            "optimiser": self.process_group.optimiser_state(self.learner, self.optimiser),
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
            "losses": self.losses,
            "step": self.step,
            "bad": self.bad,
            "best": self.best,
            "lowest": self.lowest,
            "falls": self.falls,
            "elapsed": self.elapsed,
            "micro_tokens": self.micro_tokens,
            "examples": len(self.train),
        }
        if self.process_group.is_main_process:
            save_checkpoint(self.limits.checkpoints, self.step, state)

    def _resume(self) -> None:
        state = state_to_resume(self.limits.checkpoints, len(self.train), self.report)
        if state is None:
            return
        self.process_group.load_weights(self.learner, state["weights"])
        self.process_group.load_optimiser(self.learner, self.optimiser, state["optimiser"])
        torch.set_rng_state(state["random"])
        if state["cuda_random"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"], self.device)
        for name in ("losses", "step", "bad", "best", "elapsed", "micro_tokens"):
            setattr(self, name, state[name])
        # Not in checkpoints of before.
        self.lowest, self.falls = state.get("lowest"), state.get("falls", False)
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")


def is_as_good(losses: Tensor, lowest: Tensor) -> bool:
    """Whether what was measured last may be as good as the lowest: paired, within half a standard error.

    [n] each, of the same judgements. A few judgements of validation tell little, and whoever stops at the least of
    them often stops before anything was learnt. The one-standard-error rule of Breiman et al. (1984), section 3.4.3,
    for the number of steps; half of one, since later is not simpler.
    """
    worse = losses - lowest
    if len(worse) < 2:
        return False
    return bool(worse.mean() <= _TOLERANCE * worse.std() / len(worse) ** 0.5)


def _size(batch: Batch) -> int:
    return len(examples_of(batch))
