"""The training loop: from pairs to a trained model, stoppable at every step and resumable with the same losses."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from workers.errors import RewardError
from workers.models import ChunkCache, StepEncoder
from workers.objectives import OBJECTIVES
from workers.schema.recipe import Recipe
from workers.text import ChunkRenderer
from workers.text.pairs import Pairs
from workers.train.batches import epoch_batches
from workers.train.checkpoints import newest_checkpoint, save_checkpoint
from workers.train.events import Report
from workers.train.optimiser import make_optimiser, set_learning_rate, trainable, uses_bfloat16
from workers.train.pairs import annotator_places, bootstrap_weights, pair_tensors
from workers.train.rewards import encode_ahead, measured_rewards, raw_rewards

_LOG_SECONDS = 1.0


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
    """One training of one model. `losses` has one number for every step done, over all attempts."""

    model: StepEncoder
    renderer: ChunkRenderer
    recipe: Recipe
    train: Pairs
    validation: Pairs
    seed: int
    report: Report
    cache: ChunkCache | None
    limits: Limits = field(default_factory=Limits)
    losses: list[float] = field(default_factory=list)
    step: int = 0
    bad: int = 0  # measurements since the best one
    best: dict[str, Any] | None = None
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        self.device = next(self.model.parameters()).device
        self.bfloat16 = uses_bfloat16(self.recipe, self.device)
        self.annotators = annotator_places(self.train.pairs)
        self.objective = OBJECTIVES[self.recipe.objective](
            has_ties=self.train.count("tie") > 0,
            has_both_bad=self.train.count("both_bad") > 0,
            annotators=len(self.annotators),
            learn=self.recipe.annotators == "learnt",
            smoothing=self.recipe.label_smoothing,
            centring=self.recipe.centring,
        ).to(self.device)
        self.optimiser = make_optimiser(self.model, self.objective, self.recipe)
        self.weights = bootstrap_weights(len(self.train), self.recipe.ensemble, self.seed)
        epochs = (
            epoch_batches(self.train, self.recipe, seed=self.seed, epoch=epoch)
            for epoch in range(self.recipe.epochs)
        )
        self.batches: list[list[int]] = []
        self.measure_after: set[int] = set()  # steps done when validation is measured
        for batches in epochs:
            start, parts = len(self.batches), self.recipe.evaluations_per_epoch
            self.measure_after |= {start + round(len(batches) * part / parts) for part in range(1, parts + 1)}
            self.batches += batches

    def run(self) -> None:
        """Train to the end, or to the best measurement where there is validation. Raises Stopped, RewardError."""
        self._encode_ahead()
        torch.manual_seed(self.seed)
        self._resume()
        started, saved, logged = time.monotonic(), time.monotonic(), (time.monotonic(), 0)
        before, pairs_done = self.elapsed, 0
        while self.step < len(self.batches) and not self._is_enough():
            batch = self.batches[self.step]
            rate = set_learning_rate(self.optimiser, self.step, len(self.batches), self.recipe.warmup)
            self.losses.append(self._train_step(batch))
            self.step += 1
            pairs_done += len(batch)
            now = time.monotonic()
            self.elapsed = before + now - started
            measured = self._measure() if self.step in self.measure_after and len(self.validation) else None
            if measured or self.step == len(self.batches) or now - logged[0] >= _LOG_SECONDS:
                speed = (pairs_done - logged[1]) / max(1e-9, now - logged[0])
                logged = (now, pairs_done)
                self._say(rate, speed, measured)
            if self.limits.stop():
                self._save()
                raise Stopped
            if now - saved >= self.recipe.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
        self._save()  # so that a run taken up again in its evaluation does not train anew
        if self.best is not None:
            self._load_weights(self.best["weights"])
        self.model.eval()

    def _encode_ahead(self) -> None:
        if self.cache is None or not self.model.frozen:
            return
        rendered, said = [*self.train.rendered, *self.validation.rendered], time.monotonic()
        for done in encode_ahead(
            self.model, self.renderer, rendered, cache=self.cache, bfloat16=self.bfloat16
        ):
            if self.limits.stop():
                raise Stopped
            if time.monotonic() - said >= _LOG_SECONDS:
                self.report(message=f"encoded {done} chunks")
                said = time.monotonic()

    def _is_enough(self) -> bool:
        if self.recipe.patience and self.bad >= self.recipe.patience:
            self.report(message=f"stopped early: validation has not improved {self.bad} times")
            return True
        if self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
            self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
            return True
        return False

    def _train_step(self, batch: list[int]) -> float:
        """One optimiser step. Out of memory: the batch goes through in twice as many parts, with the same sum."""
        self.model.train()
        parts, state = 1, torch.get_rng_state()
        while True:
            self.optimiser.zero_grad(set_to_none=True)
            try:
                loss = sum(self._backward(batch[part::parts], len(batch)) for part in range(parts))
                break
            except torch.OutOfMemoryError:
                if parts >= len(batch):
                    raise RewardError(
                        "one pair alone does not fit into memory; lower max_tokens or chunk_tokens."
                    ) from None
                parts *= 2
                torch.set_rng_state(state)
                self.report(message=f"out of memory: the batch goes on in {parts} parts")
        nn.utils.clip_grad_norm_(trainable(self.model, self.objective), self.recipe.clip_norm)
        self.optimiser.step()
        return float(loss)

    def _backward(self, batch: list[int], whole: int) -> float:
        """Adds the gradients of these pairs; their part of the mean over the whole batch's pairs and the heads."""
        pairs = [self.train.pairs[place] for place in batch]
        places = sorted({place for pair in pairs for place in (pair.a, pair.b)})
        row = {place: index for index, place in enumerate(places)}
        raw = raw_rewards(
            self.model,
            self.renderer,
            [self.train.rendered[place] for place in places],
            aggregation=self.recipe.aggregation,
            cache=self.cache if self.model.frozen else None,
            bfloat16=self.bfloat16,
        )
        tensors = pair_tensors(pairs, self.recipe, self.annotators, self.device)
        a, b = raw[[row[pair.a] for pair in pairs]], raw[[row[pair.b] for pair in pairs]]
        weights = self.weights[batch] * torch.tensor([[pair.record.weight] for pair in pairs])
        losses = self.objective(a, b, tensors) * weights.to(raw)
        loss = losses.sum() / (whole * losses.shape[1])
        if not bool(loss.isfinite()):
            bad = [
                pair.name for pair, one in zip(pairs, losses, strict=True) if not bool(one.isfinite().all())
            ]
            raise RewardError(
                f"the loss became {loss.item()} at step {self.step + 1}; lower the learning rate, or look at "
                f"these pairs: {'; '.join((bad or [pair.name for pair in pairs])[:20])}."
            )
        loss.backward()
        return float(loss.detach())

    def _measure(self) -> dict[str, float]:
        """Validation: accuracy and log loss over its strict pairs; keeps the weights if they are the best so far."""
        strict = [pair for pair in self.validation.pairs if pair.record.choice in ("a", "b")]
        raw = measured_rewards(
            self.model,
            self.renderer,
            self.validation.rendered,
            aggregation=self.recipe.aggregation,
            cache=self.cache if self.model.frozen else None,
            bfloat16=self.bfloat16,
        )
        if not strict:
            return {}
        won = raw[[pair.a if pair.record.choice == "a" else pair.b for pair in strict]]
        lost = raw[[pair.b if pair.record.choice == "a" else pair.a for pair in strict]]
        difference = won - lost
        log_loss = float(-functional.logsigmoid(difference).mean())
        accuracy = float(((difference > 0).float() + 0.5 * (difference == 0).float()).mean())
        if self.best is None or log_loss < self.best["log_loss"]:
            self.best = {"log_loss": log_loss, "step": self.step, "weights": self._weights()}
            self.bad = 0
        else:
            self.bad += 1
        return {"accuracy": accuracy, "log_loss": log_loss}

    def _say(self, rate: float, speed: float, measured: dict[str, float] | None) -> None:
        event: dict[str, Any] = {
            "step": self.step,
            "loss": self.losses[-1],
            "learning_rate": rate,
            "pairs_per_second": speed,
            "progress": {"done": self.step, "total": len(self.batches)},
        }
        self.report(**event | ({"validation": measured} if measured else {}))

    def _weights(self) -> dict[str, dict[str, torch.Tensor]]:
        parts = {"mixer": self.model.mixer} | ({} if self.model.frozen else {"encoder": self.model.encoder})
        return {
            name: {key: tensor.detach().cpu().clone() for key, tensor in part.state_dict().items()}
            for name, part in parts.items()
        }

    def _load_weights(self, weights: dict[str, dict[str, torch.Tensor]]) -> None:
        for name, tensors in weights.items():
            getattr(self.model, name).load_state_dict(tensors)

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = {
            "weights": self._weights(),
            "objective": self.objective.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
            "losses": self.losses,
            "step": self.step,
            "bad": self.bad,
            "best": self.best,
            "elapsed": self.elapsed,
            "pairs": len(self.train),
        }
        save_checkpoint(self.limits.checkpoints, self.step, state)

    def _resume(self) -> None:
        if self.limits.checkpoints is None:
            return
        state, unreadable = newest_checkpoint(self.limits.checkpoints)
        for name in unreadable:
            self.report(message=f"the checkpoint {name} cannot be read; going on from the one before it")
        if state is None:
            return
        if state["pairs"] != len(self.train):
            raise RewardError("the checkpoint is of other training data; remove checkpoints/ to start anew.")
        self._load_weights(state["weights"])
        self.objective.load_state_dict(state["objective"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        if state["cuda_random"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"], self.device)
        for name in ("losses", "step", "bad", "best", "elapsed"):
            setattr(self, name, state[name])
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")
