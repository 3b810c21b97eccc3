"""Labels of steps: the process reward model. What no one labelled is masked, not guessed."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import StepLabel, StepLabelRecord
from workers.schema.recipe import Recipe

UNKNOWN = -100  # of torch's cross entropy; never a class


def label_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log P(label) over the steps whose label is known. logits: [steps, heads, classes]; labels: [steps] long,
    UNKNOWN where it is masked. Returns [heads]; 0 where no label is known.

    Lightman et al. (arXiv 2305.20050), section 2.2; with two classes this is binary cross entropy.
    """
    heads = logits.shape[1]
    losses = functional.cross_entropy(
        logits.permute(0, 2, 1), labels.unsqueeze(1).expand(-1, heads), ignore_index=UNKNOWN, reduction="none"
    )
    return losses.sum(0) / (labels != UNKNOWN).sum().clamp(min=1)


def known_labels(record: StepLabelRecord, steps: int) -> list[StepLabel | None]:
    """By agent_step. Before the first error all is good, at it bad, after it unknown; single labels say more."""
    found: list[StepLabel | None] = [None] * steps
    if record.has_first_error:
        end = steps if record.first_error is None else min(record.first_error, steps)
        found[:end] = ["good"] * end
        if end < steps:
            found[end] = "bad"
    for step, label in record.labels.items():
        if step < steps:
            found[step] = label
    return found


class Process(Objective):
    name = "process"
    kinds = (StepLabelRecord,)
    reward_from = "labels"

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.names = self.labels(examples)

    @classmethod
    def reject_reason(cls, record: StepLabelRecord, recipe: Recipe) -> str | None:
        known = known_labels(record, len(record.trajectory.agent_steps))
        return None if any(known) else "of steps without labels"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example]) -> str | None:
        known = {
            label
            for example in examples
            for label in known_labels(_record(example), len(_record(example).trajectory.agent_steps))
            if label is not None
        }
        if len(known) > 1:
            return None
        return f"every labelled step is {next(iter(known), 'unknown')}; label steps of another kind too"

    @classmethod
    def labels(cls, examples: Sequence[Example]) -> tuple[str, ...]:
        """neutral only where someone said it."""
        said = {label for example in examples for label in _record(example).labels.values()}
        return ("good", "neutral", "bad") if "neutral" in said else ("good", "bad")

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        return torch.stack([label_loss(logits, labels) for logits, labels in self._kept(batch)])

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of the steps with a label, the share with the right one most probable."""
        right = []
        for logits, labels in self._kept(batch):
            known = labels != UNKNOWN
            best = torch.softmax(logits, -1).mean(1).argmax(-1)
            right.append((best == labels)[known].float())
        return {"loss": self(batch).mean(-1), "accuracy": torch.cat(right)}

    def _kept(self, batch: ObjectiveBatch) -> list[tuple[Tensor, Tensor]]:
        """Of every example, logits and labels of the steps that were not dropped because of the length."""
        assert batch.outputs.labels is not None
        by_trajectory = batch.outputs.labels.split()
        out = []
        for example in batch.examples:
            logits = by_trajectory[batch.output_row[example.trajectory_indices[0]]][1]
            reads = batch.rendered[example.trajectory_indices[0]].reads
            known = known_labels(_record(example), len(reads))
            kept = [label for label, read in zip(known, reads, strict=True) if read is not None]
            places = [UNKNOWN if label is None else self._place(label) for label in kept]
            out.append((logits, torch.tensor(places, device=logits.device)))
        return out

    def _place(self, label: str) -> int:
        return self.names.index(label) if label in self.names else UNKNOWN


def _record(example: Example) -> Any:
    return example.record


OBJECTIVE = Process
