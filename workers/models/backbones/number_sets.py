"""The `features` backbone over sets of numbers and over teams, whatever their order and size.

A set is read as by Zaheer et al. 2017 ("Deep Sets"): each of its rows is mapped, and their mean and maximum stand for
it. So is a team: every agent's rows are mapped by the same weights, and the state after a step joins what its agent
saw and did with the mean and the maximum, over the agents, of the latest that each of them saw and did.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from workers.errors import RewardError
from workers.models.backbones.base import Backbone
from workers.models.states import States
from workers.text.number_sets import SetNumbers, SetRenderer


class SetNetwork(Backbone):
    """layers: of a GRU over the steps of all agents in the order of their turns; 0 has a step read no earlier one but
    the latest of the other agents."""

    kind = "features"

    def __init__(self, renderer: SetRenderer, *, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.renderer: SetRenderer = renderer
        self.width = width
        layout = renderer.layout
        self.rows = nn.ModuleList(_RowMap(length, width, dropout) for length in layout.lengths)
        self.sets = nn.ModuleList(_SetMap(inner, width, dropout) for _, inner in layout.sets)
        self.team = nn.Linear(2 * width, width) if layout.is_team else None
        self.start = nn.Parameter(torch.zeros(width))
        self.recurrent = nn.GRU(width, width, layers, batch_first=True) if layers else None
        self._is_scaled = False

    def inherit(self, parent: Backbone) -> None:
        if not isinstance(parent, SetNetwork) or parent.renderer.layout != self.renderer.layout:
            raise RewardError(
                "the parent reads other numbers, sets or agents than these trajectories have.",
                pointer="/parent",
            )
        self.load_state_dict(parent.state_dict(), strict=True)
        self._is_scaled = True

    def prepare(self, rendered: Sequence[Any]) -> None:
        if self._is_scaled:
            return
        for part, length in zip(self.rows, self.renderer.layout.lengths, strict=True):
            assert isinstance(part, _RowMap)
            part.scale.fit([row for item in rendered for row in item.rows if len(row) == length])
        for place, part in enumerate(self.sets):
            assert isinstance(part, _SetMap)
            part.map.scale.fit([row for item in rendered for step in item.sets for row in step[place]])

    def deviations(self, length: int) -> NDArray[np.float64]:
        """[length]: the standard deviation of each number of a row over the training data; 1 where it never varies."""
        part = self.rows[self.renderer.layout.lengths.index(length)]
        assert isinstance(part, _RowMap)
        return part.scale.deviations

    def set_deviations(self, place: int) -> NDArray[np.float64]:
        """Those of the rows of a set, by its place in the layout."""
        part = self.sets[place]
        assert isinstance(part, _SetMap)
        return part.map.scale.deviations

    def states(self, batch: Sequence[SetNumbers], *, cache: Any = None) -> States:
        counts = tuple(len(item.rows) for item in batch)
        x = self._steps(batch)
        if self.team is not None:
            x = x + self.team(_over_agents(x, batch))
        sequences = [torch.cat([self.start.unsqueeze(0), rows]) for rows in x.split(counts)]
        if self.recurrent is None:
            return States(torch.cat(sequences), counts, (0,) * len(batch))
        padded = pad_sequence(sequences, batch_first=True)
        padded = padded + self.recurrent(padded)[0]  # padding is on the right: no real row comes after any
        lengths = torch.tensor(counts, device=x.device)
        is_row = torch.arange(padded.shape[1], device=x.device) <= lengths.unsqueeze(1)
        return States(padded[is_row], counts, (0,) * len(batch))

    def _steps(self, batch: Sequence[SetNumbers]) -> Tensor:
        """[steps of the batch, width]: each as its agent saw it."""
        rows = [row for item in batch for row in item.rows]
        x = self.start.new_zeros(len(rows), self.width)
        for part, length in zip(self.rows, self.renderer.layout.lengths, strict=True):
            places = [place for place, row in enumerate(rows) if len(row) == length]
            if places:
                read = part(self._tensor([rows[place] for place in places]))
                x = x.index_add(0, torch.tensor(places, device=x.device), read)
        for number, part in enumerate(self.sets):
            sets = [step[number] for item in batch for step in item.sets]
            x = x + part([self._tensor(elements) for elements in sets], x)
        return x

    def _tensor(self, rows: Sequence[Sequence[float]]) -> Tensor:
        return torch.tensor(rows, dtype=self.start.dtype, device=self.start.device)

    def cost(self, batch: Sequence[SetNumbers]) -> int:
        return sum(len(item.rows) + sum(map(len, step)) for item in batch for step in item.sets or ((),))


class _Scale(nn.Module):
    """A row's numbers, their sizes and their squares, standardised over the training rows: what is linear in these
    knows how far something is, whichever side it is on."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.zeros(3 * length))
        self.register_buffer("deviation", torch.ones(3 * length))

    def fit(self, rows: Sequence[Sequence[float]]) -> None:
        if not rows:
            return
        powers = _powers(torch.tensor(rows, dtype=torch.float64))
        deviation = powers.std(0, correction=0)
        self.mean.copy_(powers.mean(0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)))

    @property
    def deviations(self) -> NDArray[np.float64]:
        """[length]: of the numbers as they are."""
        return self.deviation[: len(self.deviation) // 3].double().cpu().numpy()

    def forward(self, rows: Tensor) -> Tensor:
        scaled: Tensor = (_powers(rows) - self.mean) / self.deviation
        return scaled


class _RowMap(nn.Module):
    """[n, length] -> [n, width]"""

    def __init__(self, length: int, width: int, dropout: float) -> None:
        super().__init__()
        self.scale = _Scale(length)
        self.map = nn.Sequential(
            nn.Linear(3 * length, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width)
        )

    def forward(self, rows: Tensor) -> Tensor:
        mapped: Tensor = self.map(self.scale(rows))
        return mapped


class _SetMap(nn.Module):
    """Sets of rows -> [sets, width]; an empty set is zeros before the last map."""

    def __init__(self, length: int, width: int, dropout: float) -> None:
        super().__init__()
        self.map = _RowMap(length, width, dropout)
        self.join = nn.Linear(2 * width + 1, width)

    def forward(self, sets: Sequence[Tensor], like: Tensor) -> Tensor:
        counts = torch.tensor([len(rows) for rows in sets], device=like.device)
        pooled = like.new_zeros(len(sets), 2 * like.shape[1])
        filled = counts.nonzero().squeeze(1)
        if len(filled):
            rows = self.map(torch.cat([rows for rows in sets if len(rows)]))
            parts = rows.split(counts[filled].tolist())
            found = torch.stack([torch.cat([part.mean(0), part.amax(0)]) for part in parts])
            pooled = pooled.index_add(0, filled, found)
        joined: Tensor = self.join(torch.cat([pooled, counts.to(like).log1p().unsqueeze(1)], 1))
        return joined


def _powers(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.abs(), rows.square()], -1)


def _over_agents(x: Tensor, batch: Sequence[SetNumbers]) -> Tensor:
    """[steps, 2 * width]: the mean and the maximum of the latest step of each agent that has acted by then."""
    most = max(1 + max(item.agents, default=0) for item in batch)
    latest: list[list[int]] = []
    row = 0
    for item in batch:
        now = [-1] * most
        for agent in item.agents:
            now[agent] = row
            latest.append(list(now))
            row += 1
    places = torch.tensor(latest, dtype=torch.long, device=x.device).reshape(-1, most)
    is_there = (places >= 0).unsqueeze(2)
    seen = x[places.clamp(min=0)]
    mean = (seen * is_there).sum(1) / is_there.sum(1)
    return torch.cat([mean, seen.masked_fill(~is_there, -torch.inf).amax(1)], 1)
