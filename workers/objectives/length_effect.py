"""What annotators give for length alone, learnt next to the reward and left out of it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workers.schema import FeedbackRecord, Trajectory
from workers.schema.records import record_trajectories
from workers.text.segments import segments


def agent_text_length(trajectory: Trajectory) -> int:
    """Characters of what the agent said, thought and called."""
    own = (piece for step in trajectory.steps if step.source == "agent" for piece in segments(step))
    return sum(len(piece.text) for piece in own if piece.source in ("agent", "reasoning"))


class LengthEffect(nn.Module):
    """gamma * z, with z the log length in standard deviations of the training trajectories.

    A choice is explained by r_a - r_b + gamma (z_a - z_b), and the reward that is served is r: the length term of
    length-controlled AlpacaEval (Dubois et al. 2024, arXiv 2404.04475, eq. 1 and 3), which is set to 0 for the score.
    gamma has no penalty, so that what length explains is not left to the features of the reward, which have one.
    """

    gamma: nn.Parameter

    def __init__(self, trajectories: Sequence[Trajectory]) -> None:
        """trajectories: of the training examples. They may be of one length, then the effect stays 0."""
        super().__init__()
        logs = torch.tensor(
            [_log_length(trajectory) for trajectory in trajectories] or [0.0], dtype=torch.double
        )
        self._mean, self._spread = float(logs.mean()), float(logs.std(correction=0)) or 1.0
        self.gamma = nn.Parameter(torch.zeros(()))

    def standardised(self, trajectory: Trajectory) -> float:
        return (_log_length(trajectory) - self._mean) / self._spread

    def forward(self, lengths: Tensor) -> Tensor:
        """What is added to rewards of trajectories with these `standardised` lengths."""
        return self.gamma.to(lengths) * lengths


def example_trajectories(records: Sequence[FeedbackRecord]) -> list[Trajectory]:
    """Of records, each once."""
    return list(
        {side.content_hash: side for record in records for side in record_trajectories(record)}.values()
    )


def _log_length(trajectory: Trajectory) -> float:
    return float(torch.log1p(torch.tensor(float(agent_text_length(trajectory)), dtype=torch.double)))
