"""Rewards by stages that are discovered in few demonstrations (Sermanet et al. 2017, arXiv 1612.06699).

Each demonstration is divided into as many stages as `stages` says, so that its steps vary as little as possible within
a stage. A step's value is then learnt to be the share of the stages that are reached with it, and 0 of trajectories
that are no demonstrations: the reward of a step is what it brings the task further. The paper divides by halves and
recognises a stage by the features of a network that best separate it; here the division is the best one, and the
model's own backbone recognises stages.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import DemonstrationRecord, OutcomeRecord, Step, Trajectory, is_demonstrated
from workers.schema.recipe import Recipe
from workers.text.numeric import hashed_words

Floats = NDArray[np.float64]


def best_stages(steps: Floats, count: int) -> list[int]:
    """By step its stage, from 0: of all divisions of the steps [T, features] into `count` stages that follow each
    other, the one with the least sum of squared distances from the means of the stages. Each has a step: T >= count.

    Dynamic programming, O(count T^2) (Fisher 1958).
    """
    total = len(steps)
    sums = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, 0)])
    squares = np.concatenate([[0.0], np.cumsum((steps**2).sum(1))])

    def costs(end: int) -> Floats:
        """[end]: of one stage from each start to `end`."""
        lengths = end - np.arange(end)
        return squares[end] - squares[:end] - ((sums[end] - sums[:end]) ** 2).sum(1) / lengths

    best = np.full((count + 1, total + 1), np.inf)
    first = np.zeros((count + 1, total + 1), dtype=int)  # where the last stage begins
    best[0, 0] = 0.0
    for end in range(1, total + 1):
        of_last = costs(end)
        for stage in range(1, min(count, end) + 1):
            found = best[stage - 1, :end] + of_last
            first[stage, end] = int(found.argmin())
            best[stage, end] = found[first[stage, end]]
    stages, end = [0] * total, total
    for stage in range(count, 0, -1):
        begin = first[stage, end]
        stages[begin:end] = [stage - 1] * (end - begin)
        end = begin
    return stages


def progress_loss(values: Tensor, wanted: Tensor) -> Tensor:
    """(V_t - stage / stages)^2, elementwise. values: [rows, heads]; wanted: [rows]."""
    return (values - wanted.unsqueeze(-1)).square()


class Perceptual(Objective):
    """Steps are compared by their numbers, each in standard deviations over the training data, or by the words that
    the agent wrote and called, hashed to a vector of length 1."""

    name = "perceptual"
    kinds = (DemonstrationRecord, OutcomeRecord)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.stages = recipe.stages
        rows = [row for example in examples for row in _rows(_trajectory(example))]
        numbers = np.array(rows) if rows else np.zeros((1, 1))
        spread = numbers.std(0)
        self._mean, self._scale = numbers.mean(0), np.where(spread > 1e-6, spread, 1.0)
        self._is_text = bool(examples) and _is_text(_trajectory(examples[0]))
        self._by_content: dict[str, list[float]] = {}

    @classmethod
    def reject_reason(cls, record: Any, recipe: Recipe) -> str | None:
        if isinstance(record, OutcomeRecord) or not record.demonstration:
            return None
        is_short = len(record.trajectory.agent_steps) < recipe.stages
        return (
            f"of demonstrations with fewer than {recipe.stages} agent steps, one for each stage"
            if is_short
            else None
        )

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if any(is_demonstrated(example.record) for example in examples):
            return None
        return (
            "no trajectory is marked as a demonstration; mark some, or import records of the format "
            "`demonstrations`, and freeze again"
        )

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: the mean over the values of each, the one before the first step included."""
        rows, owners, wanted = batch.constant("staged rows", lambda: self._staged_rows(batch))
        losses = progress_loss(batch.outputs.values.flat[rows], wanted.to(batch.outputs.values.flat))
        total = losses.new_zeros(len(batch.examples), losses.shape[1]).index_add(0, owners, losses)
        counts = losses.new_zeros(len(batch.examples)).index_add(0, owners, torch.ones_like(losses[:, 0]))
        return total / counts.unsqueeze(1)

    def progress(self, trajectory: Trajectory) -> list[float]:
        """By agent step of a demonstration, the share of the stages that are reached with it."""
        key = trajectory.content_hash
        if key not in self._by_content:
            steps = np.array([*_rows(trajectory)])
            steps = steps if self._is_text else (steps - self._mean) / self._scale
            count = min(self.stages, len(steps))
            reached = 1 + np.array(best_stages(steps, count))
            self._by_content[key] = np.divide(reached, count).tolist()
        return self._by_content[key]

    def _staged_rows(self, batch: ObjectiveBatch) -> tuple[Tensor, Tensor, Tensor]:
        """[rows] each, of the values before and after steps that are kept: the row, the place of its example, and what
        the value is to be."""
        firsts = batch.outputs.values.first[batch.rows()].tolist()
        rows, owners, wanted = list[int](), list[int](), list[float]()
        for owner, (example, first) in enumerate(zip(batch.examples, firsts, strict=True)):
            reads = batch.rendered[example.trajectory_indices[0]].reads
            kept = [step for step, read in enumerate(reads) if read is not None]
            progress = (
                self.progress(_trajectory(example)) if is_demonstrated(example.record) else [0.0] * len(reads)
            )
            rows += range(first, first + 1 + len(kept))
            owners += [owner] * (1 + len(kept))
            wanted += [0.0, *(progress[step] for step in kept)]
        device = batch.outputs.rewards.device
        return (
            torch.tensor(rows, dtype=torch.long, device=device),
            torch.tensor(owners, dtype=torch.long, device=device),
            torch.tensor(wanted, dtype=torch.double, device=device),
        )


def _rows(trajectory: Trajectory) -> Iterable[tuple[float, ...]]:
    for index in trajectory.agent_steps:
        step = trajectory.steps[index]
        yield tuple(step.features) if step.features else hashed_words(_text(step))


def _text(step: Step) -> str:
    return " ".join([step.text, *(f"{call.name} {call.arguments_text}" for call in step.tool_calls)])


def _is_text(trajectory: Trajectory) -> bool:
    return not any(trajectory.steps[index].features for index in trajectory.agent_steps)


def _trajectory(example: Example) -> Trajectory:
    assert isinstance(example.record, DemonstrationRecord | OutcomeRecord)
    return example.record.trajectory


OBJECTIVE = Perceptual
