"""What the steps of several agents are read as: numbers, how they relate, and what they are over the whole team.

A return is often a sum, over the steps, of what is linear in distances, in the least of them over the agents, or in
how many agents are near: with numbers that say these, a linear map finds it from few comparisons.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from workers.text.number_sets import SetNumbers


class StepRelations(nn.Module):
    """A linear map of each step's numbers, their sizes and squares, the lengths of two numbers next to each other (the
    coordinates of a place are), all standardised; of a team also of the mean, the least and the greatest of each over
    the latest step of each agent, by the kind of agent (how many numbers it has).
    """

    def __init__(self, lengths: Sequence[int], width: int, *, is_team: bool) -> None:
        super().__init__()
        self.lengths, self.is_team = tuple(lengths), is_team
        self.scales = nn.ModuleList(NumberScale(length, has_pairs=True) for length in lengths)
        inputs = sum(len(scale.mean) for scale in self.number_scales)
        self.map = nn.Linear((4 if is_team else 1) * inputs, width)

    @property
    def number_scales(self) -> list["NumberScale"]:
        return [scale for scale in self.scales if isinstance(scale, NumberScale)]

    def forward(self, batch: Sequence[SetNumbers]) -> Tensor:
        """-> [steps of the batch, width]"""
        weight = self.map.weight
        rows = [row for item in batch for row in item.rows]
        latest = latest_steps(batch, weight.device) if self.is_team else None
        inputs = []
        for length, scale in zip(self.lengths, self.number_scales, strict=True):
            places = [place for place, row in enumerate(rows) if len(row) == length]
            numbers = weight.new_zeros(len(rows), len(scale.mean))
            if places:
                numbers[places] = scale(weight.new_tensor([rows[place] for place in places]))
            inputs.append(numbers)
            if latest is not None:
                is_kind = torch.zeros(len(rows), dtype=torch.bool, device=weight.device)
                is_kind[places] = True
                inputs.append(_over_team(numbers, latest, is_kind))
        mapped: Tensor = self.map(torch.cat(inputs, 1))
        return mapped


class NumberScale(nn.Module):
    """Numbers, their sizes and their squares, standardised over the training rows: what is linear in these knows how
    far something is, whichever side it is on. has_pairs: also the lengths of each number with the next."""

    def __init__(self, length: int, *, has_pairs: bool = False) -> None:
        super().__init__()
        self.length, self.has_pairs = length, has_pairs
        count = 3 * length + (length - 1 if has_pairs else 0)
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.zeros(count))
        self.register_buffer("deviation", torch.ones(count))

    def fit(self, rows: Sequence[Sequence[float]]) -> None:
        if not rows:
            return
        numbers = self._numbers(torch.tensor(rows, dtype=torch.float64))
        deviation = numbers.std(0, correction=0)
        self.mean.copy_(numbers.mean(0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)))

    @property
    def deviations(self) -> NDArray[np.float64]:
        """[length]: of the numbers as they are."""
        return self.deviation[: self.length].double().cpu().numpy()

    def forward(self, rows: Tensor) -> Tensor:
        """[n, length] -> [n, numbers]"""
        scaled: Tensor = (self._numbers(rows) - self.mean) / self.deviation
        return scaled

    def _numbers(self, rows: Tensor) -> Tensor:
        parts = [rows, rows.abs(), rows.square()]
        if self.has_pairs:
            parts.append(torch.hypot(rows[:, 1:], rows[:, :-1]))
        return torch.cat(parts, 1)


def latest_steps(batch: Sequence[SetNumbers], device: torch.device) -> Tensor:
    """[steps, agents] long: at each step, the row of the latest step of each agent so far; -1 for none."""
    most = max(1 + max(item.agents, default=0) for item in batch)
    latest: list[list[int]] = []
    for item in batch:
        now = [-1] * most
        for agent in item.agents:
            now[agent] = len(latest)
            latest.append(list(now))
    return torch.tensor(latest, dtype=torch.long, device=device).reshape(-1, most)


def _over_team(numbers: Tensor, latest: Tensor, is_kind: Tensor) -> Tensor:
    """[steps, n], [steps, agents], [steps] -> [steps, 3 n]: 0 where no agent of the kind has acted so far."""
    rows = latest.clamp(min=0)
    is_there = ((latest >= 0) & is_kind[rows]).unsqueeze(2)
    seen, is_any = numbers[rows], is_there.any(1)
    mean = (seen * is_there).sum(1) / is_there.sum(1).clamp(min=1)
    least = seen.masked_fill(~is_there, torch.inf).amin(1).where(is_any, 0)
    greatest = seen.masked_fill(~is_there, -torch.inf).amax(1).where(is_any, 0)
    return torch.cat([mean, least, greatest], 1)
