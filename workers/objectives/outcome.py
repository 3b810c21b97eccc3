"""Success or failure of the whole trajectory, from a verifier: the outcome-supervised reward model."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import OutcomeRecord
from workers.schema.recipe import Recipe


def outcome_loss(rewards: Tensor, success: Tensor) -> Tensor:
    """-[y log s(r) + (1 - y) log s(-r)], elementwise. rewards: [examples, heads], logits; success: [examples], 0 or 1.

    Cobbe et al. (2021), section 4.2, at the last token; WebRL (arXiv 2411.02337), eq. 1.
    """
    wanted = success.unsqueeze(-1).expand_as(rewards)
    return functional.binary_cross_entropy_with_logits(rewards, wanted, reduction="none")


def one_class(examples: Sequence[Example]) -> str | None:
    """In words, where all outcomes are alike."""
    outcomes = {example.record.success for example in examples if isinstance(example.record, OutcomeRecord)}
    if len(outcomes) > 1:
        return None
    said = "succeeded" if outcomes == {True} else "failed"
    return f"all {len(examples)} trajectories {said}; import some that did not, and freeze again"


class Outcome(Objective):
    name = "outcome"
    kinds = (OutcomeRecord,)
    reads_steps = False

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        return one_class(examples)

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        return outcome_loss(batch.rewards(), _success(batch))

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """Of the mean reward over the heads."""
        mean, success = batch.rewards().mean(-1), _success(batch)
        right = ((mean > 0) == (success > 0.5)).to(mean)
        return {"loss": outcome_loss(mean.unsqueeze(-1), success).squeeze(-1), "accuracy": right}


def _success(batch: ObjectiveBatch) -> Tensor:
    return batch.numbers(
        "success",
        lambda: [
            float(example.record.success)
            for example in batch.examples
            if isinstance(example.record, OutcomeRecord)
        ],
    )


OBJECTIVE = Outcome
