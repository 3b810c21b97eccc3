"""Bradley-Terry on preferences, with ties, both-bad, margins, unreliable annotators and centring."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.schema import Choice

CHOICES: dict[Choice, int] = {"a": 0, "b": 1, "tie": 2, "both_bad": 3}


@dataclass(frozen=True, slots=True)
class PairTensors:
    """choice [pairs] long, by CHOICES. margin [pairs], in raw reward. reliability [pairs], the chance that the
    annotator says what he means. annotator [pairs] long."""

    choice: Tensor
    margin: Tensor
    reliability: Tensor
    annotator: Tensor


def preference_loss(
    a: Tensor, b: Tensor, margin: Tensor, reliability: Tensor, tie_threshold: Tensor, smoothing: float
) -> Tensor:
    """-log P(a preferred to b), elementwise; `a` is the one that was chosen.

    P = q s(d - margin - eta) + (1 - q) s(-d - margin - eta), d = a - b, s the logistic function.
    eta = tie_threshold >= 0: Rao & Kupper (1967). margin: Llama 2 (arXiv 2307.09288), eq. 2.
    q = reliability: Crowd-BT (Chen et al. 2013), eq. 3; smoothing mixes in the flipped log-likelihood.
    """
    right = functional.logsigmoid(a - b - margin - tie_threshold)
    wrong = functional.logsigmoid(b - a - margin - tie_threshold)
    q = reliability.clamp(1e-6, 1.0)
    # log(q e^right + (1 - q) e^wrong); at q = 1 exactly `right`.
    kept = torch.where(
        q >= 1.0, right, torch.logaddexp(right + q.log(), wrong + (1 - q).clamp(min=1e-12).log())
    )
    return -(1 - smoothing) * kept - smoothing * wrong


def tie_loss(a: Tensor, b: Tensor, tie_threshold: Tensor) -> Tensor:
    """-log P(tie) = -log[(e^(2 eta) - 1) s(d - eta) s(-d - eta)], elementwise (Rao & Kupper 1967)."""
    both = functional.logsigmoid(a - b - tie_threshold) + functional.logsigmoid(b - a - tie_threshold)
    return -(both + torch.expm1(2 * tie_threshold).log())


def below_loss(raw: Tensor, threshold: Tensor) -> Tensor:
    """-log s(threshold - raw): this one is not acceptable."""
    return -functional.logsigmoid(threshold - raw)


class BradleyTerry(nn.Module):
    """The loss with what it learns beside the model: the tie threshold, the acceptability threshold, reliabilities.

    Both-bad is two points under a learnt threshold. Who chose one of two could have said both-bad, so where a
    data set has any, the chosen one of every strict pair is a point above it; that keeps the threshold in place.
    """

    def __init__(
        self,
        *,
        has_ties: bool,
        has_both_bad: bool,
        annotators: int,
        learn: bool,
        smoothing: float,
        centring: float,
    ) -> None:
        super().__init__()
        self.has_ties, self.has_both_bad, self.learn = has_ties, has_both_bad, learn
        self.smoothing, self.centring = smoothing, centring
        self.tie = nn.Parameter(torch.tensor(-1.0)) if has_ties else None
        self.threshold = nn.Parameter(torch.tensor(0.0)) if has_both_bad else None
        self.annotator = nn.Parameter(torch.full((annotators,), 2.0)) if learn else None  # s(2) = 0.88

    def forward(self, a: Tensor, b: Tensor, pairs: PairTensors) -> Tensor:
        """a, b: raw rewards [pairs, heads]. Returns [pairs, heads], not yet weighted."""
        choice, margin = pairs.choice.unsqueeze(-1), pairs.margin.unsqueeze(-1)
        eta = a.new_zeros(()) if self.tie is None else functional.softplus(self.tie)
        reliability = (
            pairs.reliability if self.annotator is None else self.annotator.sigmoid()[pairs.annotator]
        )
        chosen, other = torch.where(choice == 1, b, a), torch.where(choice == 1, a, b)
        q = reliability.unsqueeze(-1).expand_as(a)
        loss = preference_loss(chosen, other, margin, q, eta, self.smoothing)
        if self.tie is not None:
            loss = torch.where(choice == 2, tie_loss(a, b, eta), loss)
        if self.threshold is not None:
            above = loss - functional.logsigmoid(chosen - self.threshold)
            below = below_loss(a, self.threshold) + below_loss(b, self.threshold)
            loss = torch.where(choice == 3, below, torch.where(choice <= 1, above, loss))
        return loss + self.centring * (a + b).square()
