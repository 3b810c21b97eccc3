"""Progress attribution: step rewards whose sum is the outcome."""

from collections.abc import Sequence

from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.outcome import one_class
from workers.schema import OutcomeRecord
from workers.schema.recipe import Recipe


def attribution_loss(whole: Tensor, outcome: Tensor) -> Tensor:
    """(sum_t c_t - R)^2, elementwise. whole: [examples, heads], the sums; outcome: [examples].

    SPA (arXiv 2505.20732), eq. 4: stepwise progress estimated from the outcome alone.
    """
    return (whole - outcome.unsqueeze(-1)).square()


class Progress(Objective):
    """c_t: the step rewards at the ends of the agent's turns. R: the outcome's reward, or 1 for success and 0."""

    name = "progress"
    kinds = (OutcomeRecord,)
    joint_weight = 0.0  # `outcome` learns from the same records

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        return (
            one_class(examples)
            if all(getattr(example.record, "reward", 0) is None for example in examples)
            else None
        )

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        whole = batch.outputs.attributed[batch.rows()]
        outcomes = batch.numbers(
            "outcomes",
            lambda: [
                _outcome(example.record)
                for example in batch.examples
                if isinstance(example.record, OutcomeRecord)
            ],
        )
        return attribution_loss(whole, outcomes.to(whole))


def _outcome(record: OutcomeRecord) -> float:
    return float(record.success) if record.reward is None else record.reward


OBJECTIVE = Progress
