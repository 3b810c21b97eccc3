"""The training loop of a reward model, and its batches: examples, shuffled and filled up to budgets.

Training can stop after every step, and a resumed training has the same losses.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from workers.errors import RewardError
from workers.models import Backbone
from workers.objectives import Examples
from workers.schema.recipe import Recipe
from workers.train.checkpoints import random_state, restore_random_state, save_checkpoint, state_to_resume
from workers.train.distributed.group import ProcessGroup
from workers.train.early_stopping import EarlyStopping
from workers.train.events import Report
from workers.train.limits import LOG_SECONDS, MemoryHalved, TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.optimiser import make_optimiser, set_learning_rate, uses_bfloat16


@dataclass(frozen=True, slots=True)
class ExampleGroup:
    """Indices of examples that stay together, and their cost (`Backbone.cost`)."""

    examples: tuple[int, ...]
    cost: int


TrainingBatch = list[ExampleGroup]
_CHECKPOINTED = ("losses", "step", "elapsed", "micro_tokens")


@dataclass
class RewardTrainer:
    """One training of one model. `losses` has one number for every step, over all attempts."""

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
    elapsed: float = 0.0
    micro_tokens: int = 0  # tokens in one forward pass; halved after memory ran out

    def __post_init__(self) -> None:
        self.model, self.examples = self.module.model, self.module.examples
        self.device = self.model.backbone.device
        self.model.backbone.in_bfloat16 = uses_bfloat16(self.recipe, self.device)
        self.micro_tokens = self.limits.micro_tokens(self.micro_tokens or self.recipe.micro_tokens)
        self.model.backbone.prepare(self.examples.rendered)
        self.process_group.shard(self.model, self.model.backbone.blocks())
        self.optimiser = make_optimiser(self.module, self.recipe)
        self.trainable = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        groups = make_groups(self.examples, self.model.backbone, self.recipe)
        self.batches: list[TrainingBatch] = []
        self.validation_steps: set[int] = set()  # validate once this many steps are done
        self.early_stopping = EarlyStopping(self.recipe.patience, len(self.validation))
        for epoch in range(self.recipe.epochs):
            self.early_stopping.start_epoch(epoch, self.recipe.epochs, len(self.batches))
            batches = epoch_batches(groups, self.recipe, seed=self.seed, epoch=epoch)
            start, parts = len(self.batches), self.recipe.evaluations_per_epoch
            self.validation_steps |= {
                start + round(len(batches) * part / parts) for part in range(1, parts + 1)
            }
            self.batches += batches

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
            done += len(example_indices(batch))
            now = time.monotonic()
            self.elapsed = before + now - started
            validated = (
                self._validate() if self.step in self.validation_steps and len(self.validation) else None
            )
            if validated or self.step == len(self.batches) or now - logged[0] >= LOG_SECONDS:
                speed = (done - logged[1]) / max(1e-9, now - logged[0])
                logged = (now, done)
                progress = {"done": self.step, "total": len(self.batches)}
                event: dict[str, Any] = {"validation": validated} if validated else {}
                event |= {"step": self.step, "loss": self.losses[-1], "learning_rate": rate}
                self.report(**event, pairs_per_second=speed, progress=progress)
            stop, save, self.elapsed = self.process_group.all_reduce_max(
                self.limits.stop(), now - saved >= self.recipe.checkpoint_seconds, self.elapsed
            )
            if stop or save:
                self._save()
                saved = time.monotonic()
            if stop:
                raise TrainingStopped
        self._save()  # a run that is resumed during its evaluation then does not train again
        if (best := self.early_stopping.best) is not None:
            self.process_group.load_weights(self.model, best["weights"])
        self.model.eval()

    def _fill_cache(self) -> None:
        if self.cache is not None:
            rendered = [*self.examples.rendered, *self.module.criteria.values(), *self.validation.rendered]
            self.limits.run_encoding(self.model.encode_ahead(rendered, self.cache), self.report)

    def _should_stop(self) -> bool:
        reason = self.early_stopping.reason_to_stop(self.step, len(self.batches))
        if reason is None and self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
            reason = f"stopped at the budget of {self.limits.seconds:g} seconds"
        if reason is not None:
            self.report(message=reason)
        return reason is not None

    def _train_step(self, batch: TrainingBatch) -> float:
        """One optimiser step; its loss. Out of memory: from then on half as many tokens in one forward pass.

        Raises MemoryHalved where other processes train with this one.
        """
        self.module.train()
        state = torch.get_rng_state()
        own_groups = batch[self.process_group.rank :: self.process_group.world_size]
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
        batch_size = len(example_indices(batch))
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
        if all(len(group.examples) == 1 for group in groups) and self.micro_tokens == 1:
            raise RewardError(
                "one comparison alone does not fit into memory; lower max_tokens, or turn gradient_checkpointing on."
            ) from None
        largest = max(sum(group.cost for group in part) for part in micro_batches(groups, self.micro_tokens))
        self.micro_tokens = max(1, min(self.micro_tokens, largest) // 2)
        if self.process_group.world_size > 1:
            # The others wait for what this process had to compute with them, so that none can go on from here.
            self.limits.write_micro_tokens(self.micro_tokens)
            raise MemoryHalved from None
        self.report(
            message=f"out of memory: from now on {self.micro_tokens} tokens are computed in one forward pass"
        )
        return split_groups(groups, self.examples, self.model.backbone, self.micro_tokens)

    def _validate(self) -> dict[str, float]:
        metrics: dict[str, float]
        groups = make_groups(self.validation, self.model.backbone, self.recipe)
        groups = split_groups(groups, self.validation, self.model.backbone, self.micro_tokens)
        parts = [example_indices(part) for part in micro_batches(groups, self.micro_tokens)]
        metrics, losses = self.process_group.broadcast(
            self.module.validation_metrics(self.validation, parts, self.cache)
        )
        if metrics:
            self.early_stopping.update(
                losses, metrics["loss"], self.step, lambda: self.process_group.trained_weights(self.model)
            )
        return metrics

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = self.early_stopping.state_dict() | {name: getattr(self, name) for name in _CHECKPOINTED}
        state |= {
            "weights": self.process_group.trained_weights(self.module),
            "optimiser": self.process_group.optimiser_state(self.module, self.optimiser),
            **random_state(self.device),
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
        restore_random_state(state, self.device)
        self.early_stopping.load_state_dict(state)
        for name in _CHECKPOINTED:
            setattr(self, name, state[name])
        self.micro_tokens = self.limits.micro_tokens(self.micro_tokens)
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")


def make_groups(examples: Examples, backbone: Backbone, recipe: Recipe) -> list[ExampleGroup]:
    """Examples of one task stay together where the backbone computes shared beginnings of trajectories once."""
    if not backbone.shares:
        found = [[index] for index in range(len(examples))]
    else:
        tasks: dict[str, list[int]] = {}
        for index, example in enumerate(examples.items):
            tasks.setdefault(example.task, []).append(index)
        found = [
            task[start : start + recipe.batch_pairs]
            for task in tasks.values()
            for start in range(0, len(task), recipe.batch_pairs)
        ]
    return [
        group
        for indices in found
        for group in _halve_to_budget(indices, examples, backbone, recipe.batch_tokens)
    ]


def epoch_batches(
    groups: Sequence[ExampleGroup], recipe: Recipe, *, seed: int, epoch: int
) -> list[TrainingBatch]:
    """Every group once; the same for the same seed and epoch."""
    order = list(groups)
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 (not for secrets)
    batches: list[TrainingBatch] = []
    size = cost = 0
    for group in order:
        size, cost = size + len(group.examples), cost + group.cost
        if not batches or size > recipe.batch_pairs or cost > recipe.batch_tokens:
            batches.append([])
            size, cost = len(group.examples), group.cost
        batches[-1].append(group)
    return batches


def example_indices(batch: TrainingBatch) -> list[int]:
    return [index for group in batch for index in group.examples]


def micro_batches(batch: TrainingBatch, budget: int) -> list[TrainingBatch]:
    """The groups of a batch, in parts whose cost is at most `budget`; a group that costs more is a part alone."""
    parts: list[TrainingBatch] = []
    used = 0
    for group in sorted(batch, key=lambda group: group.cost):
        if not parts or used + group.cost > budget:
            parts.append([])
            used = 0
        parts[-1].append(group)
        used += group.cost
    return parts


def split_groups(batch: TrainingBatch, examples: Examples, backbone: Backbone, budget: int) -> TrainingBatch:
    """The same examples, in groups that cost no more than the budget, or of one example."""
    groups: TrainingBatch = []
    for group in batch:
        if group.cost <= budget:
            groups.append(group)
        else:
            groups += _halve_to_budget(group.examples, examples, backbone, budget)
    return groups


def _halve_to_budget(
    indices: Sequence[int], examples: Examples, backbone: Backbone, budget: int
) -> list[ExampleGroup]:
    cost = _cost(indices, examples, backbone)
    if cost <= budget or len(indices) == 1:
        return [ExampleGroup(tuple(indices), cost)]
    middle = len(indices) // 2
    return [
        group
        for half in (indices[:middle], indices[middle:])
        for group in _halve_to_budget(half, examples, backbone, budget)
    ]


def _cost(indices: Sequence[int], examples: Examples, backbone: Backbone) -> int:
    trajectories = sorted(
        {trajectory for index in indices for trajectory in examples.items[index].trajectory_indices}
    )
    return backbone.cost([examples.rendered[trajectory] for trajectory in trajectories])
