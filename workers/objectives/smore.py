"""Scores of steps for reaching a goal, from data of any quality (SMORe: Sikchi et al. 2024, arXiv 2311.02013).

S(s, a, g) says how much taking a in s matters for reaching g. The visits of a policy, mixed with those of the data, are
matched with the transitions that reach the goal, mixed with the same data, by an f-divergence. Its dual is learnt, for
Pearson's chi^2, whose conjugate is f*(x) = x + x^2 / 4, with x = gamma S(s', a', g) - S(s, a, g):

    beta (1 - gamma) E_d0[S] + E_Mix[f*(x)] - (1 - beta) E_data[x],    Mix = beta q + (1 - beta) data
    = beta ((1 - gamma) E_d0[S] + E_q[x + x^2 / 4]) + (1 - beta) E_data[x^2 / 4].

So scores rise where the goal is reached, fall where episodes may begin, and agree from one step to the next in between:
a margin between the two. No discriminator and no reward is learnt, and no action is tried that the data do not have.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import OutcomeRecord
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ScoreLosses:
    """Elementwise terms of the dual. start: (1 - gamma) S, of steps at which episodes may begin; goal: x + x^2 / 4, of
    steps that reach the goal; data: x^2 / 4, twice weighed by the expectile, of steps whose next score is known."""

    start: Tensor
    goal: Tensor
    data: Tensor


def score_losses(scores: Tensor, following: Tensor, discount: float, expectile: float) -> ScoreLosses:
    """scores: S(s, a, g); following: gamma S(s', a', g), without gradients, 0 where the goal is reached.

    The paper learns M(s', g), an expectile of S(s', ., g) over the actions of the data, and x = gamma M - S. Here one
    number is both: S is learnt to be that expectile of gamma S(s', a', g), which is the same where a step has one next
    state (expectile 0.5: the mean over the data's actions).
    """
    residual = following - scores
    squares = residual.square() / 4
    weights = 2 * torch.where(residual > 0, expectile, 1 - expectile).to(squares)
    return ScoreLosses((1 - discount) * scores, residual + squares, weights * squares)


class GoalScores(Objective):
    """A success reaches its goal with its last step; the last step of a failure has no next one in the data, and is
    only a place where episodes may begin, as all are in the authors' code. The value before the first step is learnt
    as a step's, so that the first step earns what it brings."""

    name = "smore"
    kinds = (OutcomeRecord,)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.discount, self.expectile, self.mixture = recipe.discount, recipe.expectile, recipe.mixture
        steps = [len(_record(example).trajectory.agent_steps) for example in examples]
        successes = sum(_record(example).success for example in examples)
        self.mean_steps = sum(steps) / len(steps) if steps else 1.0
        self.success_share = successes / len(examples) if successes else 1.0

    @classmethod
    def reject_reason(cls, record: OutcomeRecord, recipe: Recipe) -> str | None:
        return None if record.trajectory.conditions.get("goal") else "without a goal"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if any(_record(example).success for example in examples):
            return None
        return "no trajectory reaches its goal; put what they `reached` in their metadata, and set hindsight above 0"

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: each distribution's mean is over its own steps of the training data."""
        rows = batch.constant("scored steps", lambda: _scored_steps(batch))
        values = batch.outputs.values.flat
        scores = values[rows.rows]
        next_scores = values.detach()[rows.following.clamp(min=0)]
        has_next = (rows.following >= 0).unsqueeze(-1)
        following = self.discount * torch.where(has_next, next_scores, 0.0)
        losses = score_losses(scores, following, self.discount, self.expectile)
        reaches = rows.reaches.unsqueeze(-1).to(scores)
        known = (has_next | rows.reaches.unsqueeze(-1)).to(scores)
        of_data = self.mixture * losses.start + (1 - self.mixture) * known * losses.data
        total = of_data / self.mean_steps + self.mixture * reaches * losses.goal / self.success_share
        return total.new_zeros(len(batch.examples), total.shape[1]).index_add(0, rows.owners, total)


@dataclass(frozen=True, slots=True)
class _ScoredSteps:
    """[values] each: the row, the place of its example, the row of the next value, -1 after the last, and whether the
    goal is reached with it."""

    rows: Tensor
    owners: Tensor
    following: Tensor
    reaches: Tensor


def _scored_steps(batch: ObjectiveBatch) -> _ScoredSteps:
    values = batch.outputs.values
    firsts, lasts = values.first[batch.rows()].tolist(), values.last[batch.rows()].tolist()
    rows, owners, following, reaches = list[int](), list[int](), list[int](), list[bool]()
    for owner, (example, first, last) in enumerate(zip(batch.examples, firsts, lasts, strict=True)):
        rows += range(first, last + 1)
        owners += [owner] * (last - first + 1)
        following += [*range(first + 1, last + 1), -1]
        reaches += [*[False] * (last - first), _record(example).success]
    device = values.flat.device
    return _ScoredSteps(
        torch.tensor(rows, dtype=torch.long, device=device),
        torch.tensor(owners, dtype=torch.long, device=device),
        torch.tensor(following, dtype=torch.long, device=device),
        torch.tensor(reaches, dtype=torch.bool, device=device),
    )


def _record(example: Example) -> OutcomeRecord:
    assert isinstance(example.record, OutcomeRecord)
    return example.record


OBJECTIVE = GoalScores
