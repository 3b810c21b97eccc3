"""Implicit process rewards: a policy and its reference model, whose log-ratio over what the agent wrote is the reward.

From preferences this is direct preference optimisation of trajectories (Rafailov et al. 2023, arXiv 2305.18290, eq. 7;
OPRL, arXiv 2509.19199); from outcomes the cross-entropy form of implicit process rewards (Yuan et al. 2024, arXiv
2412.01981, eq. 5; PRIME, arXiv 2502.01456). The rewards of steps come with either: no step has to be labelled.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.bradley_terry import preference_loss
from workers.objectives.outcome import one_class, outcome_loss
from workers.schema import OutcomeRecord, PreferenceRecord
from workers.schema.recipe import Recipe


def trajectory_dpo_loss(chosen: Tensor, rejected: Tensor, reliability: Tensor, smoothing: float) -> Tensor:
    """-log[q s(d) + (1 - q) s(-d)], elementwise, with d = chosen - rejected.

    chosen, rejected: rewards, beta sum_t [log pi(y_t | y_<t) - log pi_ref(y_t | y_<t)] over the agent's tokens.
    q = reliability, 1 without errors: then -log s(d), Rafailov et al. 2023, eq. 7. smoothing: the share of choices that
    are slips, as in conservative DPO: -(1 - e) log s(d) - e log s(-d).
    """
    zero = torch.zeros_like(chosen)
    return preference_loss(chosen, rejected, zero, reliability, zero, smoothing)


class ImplicitProcessObjective(Objective):
    """Strict preferences and outcomes, each record as much as its weight. The reliability of an annotator is that in
    the record (`annotators = "given"`), and at least one half, as in `BradleyTerry`."""

    name = "implicit_process"
    kinds = (PreferenceRecord, OutcomeRecord)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.recipe = recipe

    @classmethod
    def reject_reason(cls, record: Any, recipe: Recipe) -> str | None:
        if isinstance(record, OutcomeRecord):
            return None
        if record.criterion != recipe.criterion:
            return f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"
        return None if record.choice in ("a", "b") else "that name no better trajectory"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if any(isinstance(example.record, PreferenceRecord) for example in examples):
            return None
        return one_class(examples)

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        return self._losses(batch, self.recipe.label_smoothing)

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of preferences, whether the chosen trajectory has more; of outcomes, whether the sign is right."""
        margin = self._margins(batch).mean(-1)
        right = (margin > 0).to(margin) + 0.5 * (margin == 0).to(margin)
        return {"loss": self._losses(batch, 0.0).mean(-1), "accuracy": right}

    def _losses(self, batch: ObjectiveBatch, smoothing: float) -> Tensor:
        margin = self._margins(batch)
        reliability = batch.numbers("reliability", lambda: [*map(self._reliability, batch.examples)])
        is_outcome = batch.numbers("is outcome", lambda: [*map(_is_outcome, batch.examples)]).bool()
        preferred = trajectory_dpo_loss(
            margin, torch.zeros_like(margin), reliability.unsqueeze(-1).expand_as(margin), smoothing
        )
        # The margin of an outcome is the reward with its sign: -log s(r) of a success, -log s(-r) of a failure.
        decided = outcome_loss(margin, torch.ones_like(margin[:, 0]))
        return torch.where(is_outcome.unsqueeze(-1), decided, preferred)

    def _margins(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: of preferences the reward of the chosen less that of the rejected trajectory; of outcomes
        the reward, negative where it failed."""
        sign = batch.numbers("sign", lambda: [_sign(example.record) for example in batch.examples])
        others = batch.constant("others", lambda: self._other_rows(batch))
        rewards = batch.outputs.rewards
        other = torch.where(others.unsqueeze(-1) >= 0, rewards[others.clamp(min=0)], 0.0)
        return sign.unsqueeze(-1) * (batch.rewards() - other)

    def _other_rows(self, batch: ObjectiveBatch) -> Tensor:
        """[examples] long: of the second trajectory, -1 where there is one alone."""
        rows = [
            -1 if _is_outcome(example) else batch.output_row[example.trajectory_indices[1]]
            for example in batch.examples
        ]
        return torch.tensor(rows, dtype=torch.long, device=batch.outputs.rewards.device)

    def _reliability(self, example: Example) -> float:
        known = getattr(example.record, "strict_reliability", None)
        return 1.0 if known is None or self.recipe.annotators != "given" else max(known, 0.5)


def _is_outcome(example: Example) -> bool:
    return isinstance(example.record, OutcomeRecord)


def _sign(record: Any) -> float:
    is_first = record.success if isinstance(record, OutcomeRecord) else record.choice == "a"
    return 1.0 if is_first else -1.0


OBJECTIVE = ImplicitProcessObjective
