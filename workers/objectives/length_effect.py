"""What annotators give for length alone, learnt next to the reward and left out of it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workers.schema import FeedbackRecord, PreferenceRecord, RankingRecord, Trajectory
from workers.text.segments import segments

_PRIOR = 1e-3  # keeps the slope finite where the longer one always wins
_NEWTON_STEPS = 50
_LEAST_SPREAD = 1e-9  # of log lengths: less is rounding, where all are of one length


def agent_text_length(trajectory: Trajectory) -> int:
    """Characters of what the agent said, thought and called."""
    own = (piece for step in trajectory.steps if step.source == "agent" for piece in segments(step))
    return sum(len(piece.text) for piece in own if piece.source in ("agent", "reasoning"))


class LengthEffect(nn.Module):
    """gamma * z, with z the log length in standard deviations of the training trajectories.

    A choice is explained by r_a - r_b + gamma (z_a - z_b), and the reward that is served is r: the length term of
    length-controlled AlpacaEval (Dubois et al. 2024, arXiv 2404.04475, eq. 1 and 3), which is set to 0 for the score.
    gamma has no penalty and begins at what explains the training choices without any reward, so that what length
    explains is not left to the reward, whose weights have a penalty or begin near 0.
    """

    def __init__(self, chosen: Sequence[tuple[Trajectory, Trajectory]]) -> None:
        """chosen: of the training examples, the better one of two, and the other. All may be of one length, then the
        effect stays 0."""
        super().__init__()
        sides = {side.content_hash: side for pair in chosen for side in pair}
        logs = torch.tensor([_log_length(side) for side in sides.values()] or [0.0], dtype=torch.double)
        self._mean, spread = float(logs.mean()), float(logs.std(correction=0))
        self._spread = spread if spread > _LEAST_SPREAD else 1.0
        differences = [self.standardised(better) - self.standardised(worse) for better, worse in chosen]
        self.gamma = nn.Parameter(torch.tensor(_logistic_slope(differences)))

    def standardised(self, trajectory: Trajectory) -> float:
        return (_log_length(trajectory) - self._mean) / self._spread

    def forward(self, lengths: Tensor) -> Tensor:
        """What is added to rewards of trajectories with these `standardised` lengths."""
        return self.gamma.to(lengths) * lengths


def _logistic_slope(differences: Sequence[float]) -> float:
    """gamma with the highest sum of log s(gamma d) - _PRIOR gamma^2 / 2, by Newton's method."""
    d, slope = torch.tensor([*differences], dtype=torch.double), 0.0
    for _ in range(_NEWTON_STEPS):
        wrong = torch.sigmoid(-slope * d)
        gradient = float((wrong * d).sum()) - _PRIOR * slope
        slope += gradient / (float((wrong * (1 - wrong) * d.square()).sum()) + _PRIOR)
    return slope


def chosen_pairs(record: FeedbackRecord) -> list[tuple[Trajectory, Trajectory]]:
    """The better one and the other of a comparison, or of every two places of a ranking; none of ties."""
    if isinstance(record, PreferenceRecord):
        return {"a": [(record.a, record.b)], "b": [(record.b, record.a)]}.get(record.choice, [])
    if isinstance(record, RankingRecord):
        places = [*zip(record.ranks, record.trajectories, strict=True)]
        return [(better, worse) for rank, better in places for other, worse in places if rank < other]
    return []


def _log_length(trajectory: Trajectory) -> float:
    return float(torch.log1p(torch.tensor(float(agent_text_length(trajectory)), dtype=torch.double)))
