"""Labels of steps: the process reward model. What no one labelled is masked, not guessed.

With `correction_weight`, also step pairs: the step that an annotator wrote in place of one, against that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import PreferenceRecord, StepLabel, StepLabelRecord
from workers.schema.recipe import Recipe

UNKNOWN = -100  # of torch's cross entropy; never a class


def label_loss(logits: Tensor, labels: Tensor, owners: Tensor, count: int) -> Tensor:
    """[count, heads]: by trajectory, the mean of -log P(label) over the steps whose label is known, 0 where none is.

    logits: [steps, heads, classes]; labels: [steps] long, UNKNOWN where it is masked; owners: [steps] long, the
    trajectory of each step. Lightman et al. (arXiv 2305.20050), section 2.2; with two classes this is binary cross
    entropy.
    """
    heads = logits.shape[1]
    losses = functional.cross_entropy(
        logits.permute(0, 2, 1), labels.unsqueeze(1).expand(-1, heads), ignore_index=UNKNOWN, reduction="none"
    )
    known = torch.zeros_like(losses[:, 0]).masked_fill(labels != UNKNOWN, 1.0)
    total = losses.new_zeros(count, heads).index_add(0, owners, losses)
    return total / known.new_zeros(count).index_add(0, owners, known).clamp(min=1).unsqueeze(1)


def step_pair_loss(corrected: Tensor, original: Tensor) -> Tensor:
    """-log s(d), d the difference of the values of two steps after the same beginning, elementwise.

    corrected, original: log P(good) - log P(bad), the value of which the reward is made. Bradley & Terry (1952), of
    single steps as in Step-DPO (arXiv 2406.18629), eq. 3, with the value in place of the policy's implicit reward.
    """
    return functional.softplus(original - corrected)


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
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        known = {
            label
            for record in _labelled(examples)
            for label in known_labels(record, len(record.trajectory.agent_steps))
            if label is not None
        }
        if len(known) > 1:
            return None
        return f"every labelled step is {next(iter(known), 'unknown')}; label steps of another kind too"

    @classmethod
    def labels(cls, examples: Sequence[Example]) -> tuple[str, ...]:
        """neutral only where someone said it."""
        said = {label for record in _labelled(examples) for label in record.labels.values()}
        return ("good", "neutral", "bad") if "neutral" in said else ("good", "bad")

    def use_labels(self, labels: tuple[str, ...]) -> None:
        self.names = labels

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        steps = self._steps(batch)
        loss = label_loss(self._logits(batch), steps.labels, steps.owners, len(batch.examples))
        if not len(steps.pairs):
            return loss
        assert batch.outputs.labels is not None
        logits = batch.outputs.labels.flat
        values = logits[..., self.names.index("good")] - logits[..., self.names.index("bad")]
        pairs = step_pair_loss(values[steps.corrected], values[steps.original])
        return loss.index_add(0, steps.pairs, pairs)

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of the steps with a label, the share with the right one most probable."""
        labels = self._steps(batch).labels
        best = torch.softmax(self._logits(batch), -1).mean(1).argmax(-1)
        return {"loss": self(batch).mean(-1), "accuracy": (best == labels)[labels != UNKNOWN].float()}

    def _logits(self, batch: ObjectiveBatch) -> Tensor:
        assert batch.outputs.labels is not None
        return batch.outputs.labels.flat[self._steps(batch).rows]

    def _steps(self, batch: ObjectiveBatch) -> "_LabelledSteps":
        return batch.constant("steps", lambda: self._find_steps(batch))

    def _find_steps(self, batch: ObjectiveBatch) -> "_LabelledSteps":
        assert batch.outputs.labels is not None
        firsts, lasts = batch.outputs.labels.first.tolist(), batch.outputs.labels.last.tolist()
        rows, labels, owners = list[int](), list[int](), list[int]()
        pairs, corrected, original = list[int](), list[int](), list[int]()
        for owner, example in enumerate(batch.examples):
            if isinstance(example.record, PreferenceRecord):
                first, second = (lasts[batch.output_row[index]] for index in example.trajectory_indices)
                pairs.append(owner)
                corrected.append(first)
                original.append(second)
                continue
            (index,) = example.trajectory_indices
            reads = batch.rendered[index].reads
            known = known_labels(_record(example), len(reads))
            kept = [label for label, read in zip(known, reads, strict=True) if read is not None]
            first = firsts[batch.output_row[index]] + 1
            rows += range(first, first + len(kept))
            labels += [UNKNOWN if label is None else self._place(label) for label in kept]
            owners += [owner] * len(kept)
        device = batch.outputs.rewards.device
        columns = (rows, labels, owners, pairs, corrected, original)
        return _LabelledSteps(*(torch.tensor(column, dtype=torch.long, device=device) for column in columns))

    def _place(self, label: str) -> int:
        return self.names.index(label) if label in self.names else UNKNOWN


@dataclass(frozen=True, slots=True)
class _LabelledSteps:
    """Long. rows, labels, owners: [steps] each, of the steps that were not dropped because of the length: the row of
    its logits, its label or UNKNOWN, and the place of its example. pairs, corrected, original: [step pairs] each, the
    place of its example, and the row of the end of each side."""

    rows: Tensor
    labels: Tensor
    owners: Tensor
    pairs: Tensor
    corrected: Tensor
    original: Tensor


def _record(example: Example) -> Any:
    return example.record


def _labelled(examples: Sequence[Example]) -> list[StepLabelRecord]:
    """The records of step labels; the others are step pairs."""
    return [example.record for example in examples if isinstance(example.record, StepLabelRecord)]


OBJECTIVE = Process
