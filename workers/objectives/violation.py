"""Whether a violation comes: after each step, from what has been seen so far, by labels of steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.process import known_labels
from workers.schema import StepLabelRecord
from workers.schema.recipe import VIOLATION, Recipe


def prefix_loss(values: Tensor, violated: Tensor) -> Tensor:
    """-[y log s(-v) + (1 - y) log s(v)], elementwise: v are the log-odds that no violation comes.

    values: [prefixes, heads]; violated: [prefixes], 0 or 1. "Towards Policy-Compliant
    Agents" trains guardrails on prefixes like this, labelled by what the trajectory turns out to be.
    """
    wanted = (1 - violated).unsqueeze(-1).expand_as(values)
    return functional.binary_cross_entropy_with_logits(values, wanted, reduction="none")


def prefix_labels(record: StepLabelRecord, horizon: int) -> list[bool | None]:
    """[agent steps + 1]: after 0, 1, ... steps, whether a step so far or among the next `horizon` (0: all the rest)
    violates. A step labelled bad does. None where that hangs on steps that no one labelled."""
    steps = len(record.trajectory.agent_steps)
    known = known_labels(record, steps)
    labels: list[bool | None] = []
    for seen in range(steps + 1):
        window = known[: seen + horizon] if horizon else known
        labels.append(True if "bad" in window else None if None in window else False)
    return labels


def first_violation(record: StepLabelRecord) -> tuple[bool, int | None]:
    """Whether it is known, and the agent step; None where there is none."""
    known = known_labels(record, len(record.trajectory.agent_steps))
    place = known.index("bad") if "bad" in known else None
    return None not in known[:place], place


class ForeseenViolation(Objective):
    """The value before the first step and after each one is the log-odds that no violation comes."""

    name = VIOLATION
    kinds = (StepLabelRecord,)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.horizon, self.prefixes = recipe.horizon, recipe.prefixes
        counts = [sum(label is not None for label in self._labels(example)) for example in examples]
        self.mean_prefixes = sum(counts) / len(counts) if counts else 1.0

    @classmethod
    def reject_reason(cls, record: StepLabelRecord, recipe: Recipe) -> str | None:
        known = any(label is not None for label in _learnt(record, recipe.horizon, recipe.prefixes))
        return None if known else "of which nothing tells whether a violation comes"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        labels = {
            label
            for example in examples
            for label in _learnt(_record(example), recipe.horizon, recipe.prefixes)
            if label is not None
        }
        if len(labels) > 1:
            return None
        if labels == {True}:
            return "a violation comes after every prefix; label trajectories without one too"
        return "no violation comes after any prefix; label trajectories with one too, its step as bad"

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: the sum over the prefixes of each, over their mean number in training, so that each
        prefix counts the same."""
        prefixes = self._prefixes(batch)
        losses = prefix_loss(batch.outputs.values.flat[prefixes.rows], prefixes.violated)
        total = losses.new_zeros(len(batch.examples), losses.shape[-1])
        return total.index_add(0, prefixes.owners, losses) / self.mean_prefixes

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of prefixes, by the mean value over the heads."""
        prefixes = self._prefixes(batch)
        mean = batch.outputs.values.flat[prefixes.rows].mean(-1)
        return {
            "loss": self(batch).mean(-1),
            "accuracy": ((mean < 0) == (prefixes.violated > 0.5)).to(mean),
        }

    def _labels(self, example: Example) -> list[bool | None]:
        return _learnt(_record(example), self.horizon, self.prefixes)

    def _prefixes(self, batch: ObjectiveBatch) -> "_Prefixes":
        return batch.constant("prefixes", lambda: self._find_prefixes(batch))

    def _find_prefixes(self, batch: ObjectiveBatch) -> "_Prefixes":
        firsts = batch.outputs.values.first.tolist()
        rows, violated, owners = list[int](), list[float](), list[int]()
        for owner, example in enumerate(batch.examples):
            (index,) = example.trajectory_indices
            row = firsts[batch.output_row[index]]
            reads = batch.rendered[index].reads
            for seen, label in enumerate(self._labels(example)):
                if seen and reads[seen - 1] is None:  # dropped because of the length
                    continue
                if label is not None:
                    rows.append(row)
                    violated.append(float(label))
                    owners.append(owner)
                row += 1
        rewards = batch.outputs.rewards
        return _Prefixes(
            torch.tensor(rows, dtype=torch.long, device=rewards.device),
            torch.tensor(violated).to(rewards),
            torch.tensor(owners, dtype=torch.long, device=rewards.device),
        )


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """[prefixes] each, of those whose label is known: the row of the value, the label, and the place of the example."""

    rows: Tensor
    violated: Tensor
    owners: Tensor


def _learnt(record: StepLabelRecord, horizon: int, prefixes: bool) -> list[bool | None]:
    """Without `prefixes`, of the whole trajectory alone."""
    labels = prefix_labels(record, horizon)
    return labels if prefixes else [*[None] * (len(labels) - 1), labels[-1]]


def _record(example: Example) -> StepLabelRecord:
    assert isinstance(example.record, StepLabelRecord)
    return example.record


OBJECTIVE = ForeseenViolation
