"""Inverse soft Q-learning: rewards from demonstrations alone (IQ-Learn: Garg et al. 2021, arXiv 2106.12142).

Q(s, a) is learnt so that the policy exp(Q(s, a) - V(s)), V(s) = log sum_a exp Q(s, a), does what was demonstrated. The
paper's reward is Q(s, a) - gamma V(s'). Here a step earns Q(s, a) - gamma V(s), which is known when it is taken: each
term of V is moved to the step whose state it is of (potential-based shaping, Ng et al. 1999), so that the rewards of a
trajectory have the same sum, less a constant of its first state. With gamma = 1 they are log pi(a | s).

Of several speakers each is an agent, whose next state is the one before its own next step: what the others did in
between is part of what happened, so that Q is marginal over them, as in multi-agent marginal Q-learning (MAMQL, arXiv
2503.04679).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import DemonstrationRecord, OutcomeRecord, is_demonstrated
from workers.schema.recipe import Recipe

NAMES = ("action", "state")  # Q of the step, and gamma V of the state before it


def soft_values(taken: Tensor, others: Tensor, log_weights: Tensor) -> Tensor:
    """[steps, heads]: V(s) = log sum_a exp Q(s, a), of the action that was taken and of the others.

    taken: [steps, heads]; others: [steps, most others, heads]; log_weights: [steps, most others], of each other action:
    0 where all are there; log((n - 1) / k) of k that are drawn from n - 1, so that exp V has no bias (sampled softmax;
    V then is too low on average); -inf where there is none.
    """
    return torch.logsumexp(torch.cat([taken.unsqueeze(1), others + log_weights.unsqueeze(-1)], 1), 1)


def inverse_q_loss(taken: Tensor, values: Tensor, following: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """(-log pi(a | s), r^2 / (4 alpha)), elementwise: their sum over the demonstrations is -J.

    taken: Q(s, a); values: V(s); following: gamma V(s'), 0 at the end. J is the paper's with the chi^2 divergence,
    phi(r) = r - r^2 / (4 alpha), and (1 - gamma) E[V(s_0)] as E[V(s) - gamma V(s')] over the same steps:
    -J = E[V(s) - gamma V(s')] - E[r] + E[r^2] / (4 alpha) = E[V(s) - Q(s, a)] + E[r^2] / (4 alpha).
    """
    return values - taken, (taken - following).square() / (4 * alpha)


class InverseQ(Objective):
    """Trajectories that are no demonstrations count in the second term alone, the regulariser, which the paper's code
    takes over its replay buffer too: it holds their rewards near 0.

    A model has no other actions at hand when it scores, so that it also learns gamma V(s), by least squares, from the
    step and from all that could have been done instead. At a perfect fit these squares are 0, whatever Q is, so that
    they may move both.
    """

    name = "inverse_q"
    kinds = (DemonstrationRecord, OutcomeRecord)
    reward_from = "soft_q"

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.discount, self.alpha = recipe.discount, recipe.regulariser
        steps = [len(example.alternatives) for example in examples]
        self.mean_steps = sum(steps) / len(steps) if steps else 1.0

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if not any(is_demonstrated(example.record) for example in examples):
            return (
                "no trajectory is marked as a demonstration; mark some, or import records of the format "
                "`demonstrations`, and freeze again"
            )
        if all(actions == 1 for example in examples for actions, _ in example.alternatives):
            return (
                "all steps are the same, so that there is nothing that an agent could have done otherwise; add "
                "demonstrations, or outcomes of other trajectories, and freeze again"
            )
        return None

    @classmethod
    def labels(cls, examples: Sequence[Example]) -> tuple[str, ...]:
        return NAMES

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        """[examples, heads]: the sum over the steps, over their mean number in training."""
        steps, (taken, others), (state, other_states) = self._read(batch)
        values = soft_values(taken, others, steps.log_weights.to(taken))
        has_next = (steps.following >= 0).to(taken).unsqueeze(-1)
        following = self.discount * has_next * values[steps.following.clamp(min=0)]
        imitation, regulariser = inverse_q_loss(taken, values, following, self.alpha)
        losses = steps.is_demonstration.to(taken).unsqueeze(-1) * imitation + regulariser
        losses = losses + _mean_squares(
            state, other_states, self.discount * values, steps.log_weights.isfinite()
        )
        total = losses.new_zeros(len(batch.examples), losses.shape[1]).index_add(0, steps.owners, losses)
        return total / self.mean_steps

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of the steps of demonstrations, whether their Q is above that of all alternatives; 1/2 for none."""
        steps, (taken, others), _ = self._read(batch)
        is_other = steps.log_weights.isfinite()
        best = torch.where(is_other, others.mean(-1), -torch.inf).amax(1)
        mean = taken.mean(-1)
        right = (mean > best).to(mean) + 0.5 * (mean == best).to(mean)
        right = torch.where(is_other.any(1), right, 0.5)
        return {"loss": self(batch).mean(-1), "accuracy": right[steps.is_demonstration]}

    def _read(
        self, batch: ObjectiveBatch
    ) -> "tuple[_ComparedSteps, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]":
        """The steps, Q of each and of the others, and gamma V as it is read off each and off the others."""
        assert batch.outputs.labels is not None
        steps = batch.constant("compared steps", lambda: _compared_steps(batch))
        action, state = batch.outputs.labels.flat.unbind(-1)
        return steps, (action[steps.rows], action[steps.others]), (state[steps.rows], state[steps.others])


def _mean_squares(given: Tensor, others: Tensor, wanted: Tensor, is_other: Tensor) -> Tensor:
    """[steps, heads]: of what is wanted less what is given for the step and for the others."""
    there = is_other.to(given).unsqueeze(-1)
    total = (given - wanted).square() + (there * (others - wanted.unsqueeze(1)).square()).sum(1)
    return total / (1 + there.sum(1))


@dataclass(frozen=True, slots=True)
class _ComparedSteps:
    """Steps that were not dropped because of the length. rows, owners, following: [steps] long, the row of its outputs,
    the place of its example, and the place of the speaker's next step here, -1 after the last. is_demonstration:
    [steps]. others: [steps, most others] long, rows of the alternatives; log_weights: of the same shape, see
    `soft_values`."""

    rows: Tensor
    owners: Tensor
    following: Tensor
    is_demonstration: Tensor
    others: Tensor
    log_weights: Tensor


def _compared_steps(batch: ObjectiveBatch) -> _ComparedSteps:
    labels = batch.outputs.labels
    assert labels is not None
    firsts, lasts = labels.first.tolist(), labels.last.tolist()
    rows, owners, following, shown = list[int](), list[int](), list[int](), list[bool]()
    others, weights = list[list[int]](), list[list[float]]()
    for owner, example in enumerate(batch.examples):
        index = example.trajectory_indices[0]
        speakers = _speakers(example)
        latest: dict[str | None, int] = {}  # the place of each speaker's latest step
        kept = [step for step, read in enumerate(batch.rendered[index].reads) if read is not None]
        for number, agent_step in enumerate(kept, start=1):
            place, speaker = len(rows), speakers[agent_step]
            if speaker in latest:
                following[latest[speaker]] = place
            latest[speaker] = place
            rows.append(firsts[batch.output_row[index]] + number)
            owners.append(owner)
            following.append(-1)
            shown.append(is_demonstrated(example.record))
            actions, alternatives = example.alternatives[agent_step]
            others.append([lasts[batch.output_row[other]] for other in alternatives])
            weight = torch.tensor((actions - 1) / max(1, len(alternatives))).log().item()
            weights.append([weight] * len(alternatives))
    most = max(1, max(map(len, others), default=0))
    device = batch.outputs.rewards.device

    def numbers(column: list[int]) -> Tensor:
        return torch.tensor(column, dtype=torch.long, device=device)

    return _ComparedSteps(
        rows=numbers(rows),
        owners=numbers(owners),
        following=numbers(following),
        is_demonstration=torch.tensor(shown, dtype=torch.bool, device=device),
        others=torch.stack([numbers([*row, *[0] * (most - len(row))]) for row in others]),
        log_weights=torch.tensor(
            [[*row, *[-torch.inf] * (most - len(row))] for row in weights], dtype=torch.double, device=device
        ),
    )


def _speakers(example: Example) -> list[str | None]:
    trajectory = example.record.trajectory  # type: ignore[union-attr]
    return [trajectory.steps[index].speaker for index in trajectory.agent_steps]


OBJECTIVE = InverseQ
