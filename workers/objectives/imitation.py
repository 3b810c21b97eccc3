"""Imitation by a discriminator: what a step of a demonstration has that steps of other trajectories do not have.

The reward is log D - log(1 - D) of a classifier D of steps, as in adversarial imitation (GAIL: Ho and Ermon 2016, arXiv
1606.03476; the reward of AIRL: Fu et al. 2018, arXiv 1710.11248), here with trajectories of the data in place of a
policy's. A model that reads conditions imitates by preference: a demonstration under the preference of another one is
no demonstration, so that the model has to read it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import DemonstrationRecord, OutcomeRecord, is_demonstrated
from workers.schema.recipe import Recipe


def discriminator_loss(rewards: Tensor, is_shown: Tensor) -> Tensor:
    """-log D of steps that were shown, -log(1 - D) of others, elementwise; D = s(r). rewards: [steps, heads]."""
    wanted = is_shown.to(rewards).unsqueeze(-1).expand_as(rewards)
    return functional.binary_cross_entropy_with_logits(rewards, wanted, reduction="none")


def class_weights(shown: int, others: int) -> tuple[float, float]:
    """Of a shown step and of another one, so that both kinds count the same and the mean weight is 1. The classifier
    then is that of equal shares, whose logit is the log ratio of the densities."""
    total = shown + others
    return total / (2 * max(1, shown)), total / (2 * max(1, others))


class Imitation(Objective):
    """Outcomes stand for trajectories that are no demonstrations, whether they succeeded or not."""

    name = "imitation"
    kinds = (DemonstrationRecord, OutcomeRecord)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        steps = {True: 0, False: 0}
        for example in examples:
            steps[is_demonstrated(example.record)] += _step_count(example)
        self.shown_weight, self.other_weight = class_weights(steps[True], steps[False])
        self.mean_steps = sum(steps.values()) / len(examples) if examples else 1.0

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        kinds = {is_demonstrated(example.record) for example in examples}
        if kinds == {True, False}:
            return None
        if True in kinds:
            return (
                "all trajectories are demonstrations, and nothing says what they are not; add outcomes of other "
                "trajectories, mark some as no demonstration, or give demonstrations several conditions"
            )
        return (
            "no trajectory is marked as a demonstration; mark some, or import records of the format "
            "`demonstrations`, and freeze again"
        )

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: the sum over the steps, over their mean number in training."""
        rows, owners, shown = batch.constant("imitated steps", lambda: imitated_steps(batch))
        losses = discriminator_loss(batch.outputs.values.flat[rows], shown)
        weights = torch.where(shown, self.shown_weight, self.other_weight).to(losses).unsqueeze(-1)
        total = losses.new_zeros(len(batch.examples), losses.shape[1])
        return total.index_add(0, owners, losses * weights) / self.mean_steps

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of the steps, whether the sign of the mean reward is right."""
        rows, _, shown = batch.constant("imitated steps", lambda: imitated_steps(batch))
        mean = batch.outputs.values.flat[rows].mean(-1)
        return {"loss": self(batch).mean(-1), "accuracy": ((mean > 0) == shown).to(mean)}


def imitated_steps(batch: ObjectiveBatch) -> tuple[Tensor, Tensor, Tensor]:
    """[steps] each: of steps that are kept the row, the place of the example, and whether that is a demonstration."""
    values = batch.outputs.values
    firsts, lasts = values.first[batch.rows()].tolist(), values.last[batch.rows()].tolist()
    rows, owners, shown = list[int](), list[int](), list[bool]()
    for owner, (example, first, last) in enumerate(zip(batch.examples, firsts, lasts, strict=True)):
        rows += range(first + 1, last + 1)
        owners += [owner] * (last - first)
        shown += [is_demonstrated(example.record)] * (last - first)
    device = values.flat.device
    return (
        torch.tensor(rows, dtype=torch.long, device=device),
        torch.tensor(owners, dtype=torch.long, device=device),
        torch.tensor(shown, dtype=torch.bool, device=device),
    )


def _step_count(example: Example) -> int:
    record = example.record
    assert isinstance(record, DemonstrationRecord | OutcomeRecord)
    return len(record.trajectory.agent_steps)


OBJECTIVE = Imitation
