"""Temporal difference learning: after every step, the return that the trajectory is expected to reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import OutcomeRecord
from workers.schema.logged_rewards import logged_rewards
from workers.schema.recipe import CONVEX, Recipe


def lambda_returns(values: Tensor, final: Tensor, td_lambda: float) -> Tensor:
    """What each value is to become: G_T = R, G_t = (1 - lambda) U_(t+1) + lambda G_(t+1).

    values: [trajectories, rows, heads], U, each trajectory's last row at the end; final: [trajectories], R. Returns the
    shape of `values`. U_t is the whole discounted return, of which c_t = sum_(k<=t) gamma^(k-1) r_k is earned already:
    with U_t = c_t + gamma^t V_t this is the lambda-return of V (Sutton and Barto 2018, section 12.1), which is learnt
    as in ArCHer (arXiv 2402.19446) and Digi-Q (arXiv 2502.15760).
    """
    following = final.unsqueeze(-1).expand_as(values[:, -1])
    returns = [following]
    for row in range(values.shape[1] - 2, -1, -1):
        following = (1 - td_lambda) * values[:, row + 1] + td_lambda * following
        returns.append(following)
    return torch.stack(returns[::-1], 1)


def expectile_loss(values: Tensor, wanted: Tensor, expectile: float) -> Tensor:
    """2 |expectile - 1[wanted < values]| (wanted - values)^2, elementwise: for 0.5, the squared error.

    Twice the loss of IQL (arXiv 2110.06169), eq. 5.
    """
    missing = wanted - values
    return 2 * (expectile - (missing < 0).to(missing)).abs() * missing.square()


def discounted_return(record: OutcomeRecord, discount: float) -> float:
    """sum_t gamma^(t-1) r_t + gamma^(T-1) R over the agent steps. r: the rewards that the steps came with; R: the
    outcome's reward, or 1 for success and 0, after the last step. R is 0 where it is the sum of the r."""
    outcome = float(record.success) if record.reward is None else record.reward
    logged = logged_rewards(record.trajectory)
    if logged is None:
        return discount ** (len(record.trajectory.agent_steps) - 1) * outcome
    is_their_sum = record.reward is not None and math.isclose(
        math.fsum(logged), record.reward, rel_tol=1e-6, abs_tol=1e-9
    )
    rewards = [*logged[:-1], logged[-1] + (0.0 if is_their_sum else outcome)]
    return math.fsum(discount**step * reward for step, reward in enumerate(rewards))


class TemporalDifference(Objective):
    """The value before the first step and after each one, in standard deviations of the training returns from their
    mean. A linear model learns each from the return itself (lambda = 1), since its fit has fixed targets.

    Each head is led by the values of another one, where there are several, which other bootstrap samples have trained
    (double estimators: van Hasselt 2010), without gradients. The last value has seen the whole trajectory, so that
    `expectile` above one half, which takes the better continuations for those to come, does not apply to it, as to Q
    in IQL.
    """

    name = "td"
    kinds = (OutcomeRecord,)
    joint_weight = 0.0  # `outcome` learns from the same records

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.td_lambda = 1.0 if recipe.backbone in CONVEX else recipe.td_lambda
        self.discount, self.expectile = recipe.discount, recipe.expectile
        returns = torch.tensor([self._return(example) for example in examples], dtype=torch.double)
        self.mean = float(returns.mean()) if len(returns) else 0.0
        spread = float(returns.std(correction=0)) if len(returns) else 0.0
        self.spread = spread if spread > 0 else 1.0
        lengths = [len(_record(example).trajectory.agent_steps) for example in examples]
        self.mean_values = 1 + (sum(lengths) / len(lengths) if lengths else 0.0)

    @classmethod
    def reject_reason(cls, record: OutcomeRecord, recipe: Recipe) -> str | None:
        rewards = [step.reward for step in record.trajectory.steps] + [record.reward]
        if all(reward is None or math.isfinite(reward) for reward in rewards):
            return None
        return "with a reward that is no finite number"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        """With a discount, successes after other numbers of steps are told apart: sooner is better."""
        returns = {discounted_return(_record(example), recipe.discount) for example in examples}
        if len(returns) > 1:
            return None
        alike = f"the rewards of all {len(examples)} trajectories add up to {next(iter(returns), 0.0):g}"
        better = "import some that did better or worse"
        if recipe.discount < 1:
            return (
                f"{alike}, discounted by {recipe.discount:g}; {better}, or took fewer steps, and freeze again"
            )
        return f"{alike}; {better}, and freeze again, or set `discount` below 1 where some took fewer steps"

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        return self._losses(batch, self.td_lambda)

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """Against the returns themselves: a model that only agrees with itself has no low loss."""
        return {"loss": self._losses(batch, 1.0).mean(-1)}

    def _losses(self, batch: ObjectiveBatch, td_lambda: float) -> Tensor:
        """[examples, heads]: the sum over the values of each, over their mean number in training: as in a sum over all
        visits of states, longer trajectories count more."""
        rows = batch.constant("rows of values", lambda: _value_rows(batch))
        values = batch.outputs.values.flat[rows.index]
        final = batch.numbers(
            "returns",
            lambda: [(self._return(example) - self.mean) / self.spread for example in batch.examples],
        )
        wanted = lambda_returns(values.detach().roll(1, -1), final, td_lambda)
        losses = torch.cat(
            [
                expectile_loss(values[:, :-1], wanted[:, :-1], self.expectile),
                (values[:, -1:] - wanted[:, -1:]).square(),
            ],
            1,
        )
        return (losses * rows.is_value.unsqueeze(-1).to(losses)).sum(1) / self.mean_values

    def _return(self, example: Example) -> float:
        return discounted_return(_record(example), self.discount)


def _record(example: Example) -> OutcomeRecord:
    assert isinstance(example.record, OutcomeRecord)
    return example.record


@dataclass(frozen=True, slots=True)
class _ValueRows:
    """index: [examples, most rows] long, of the values of each example, the last at the end; is_value: of the same
    shape, False before the first."""

    index: Tensor
    is_value: Tensor


def _value_rows(batch: ObjectiveBatch) -> _ValueRows:
    values = batch.outputs.values
    ends = values.last[batch.rows()].unsqueeze(1)
    firsts = values.first[batch.rows()].unsqueeze(1)
    most = int((ends - firsts).max()) + 1
    index = ends - torch.arange(most - 1, -1, -1, device=ends.device)
    return _ValueRows(torch.maximum(index, firsts), index >= firsts)


OBJECTIVE = TemporalDifference
