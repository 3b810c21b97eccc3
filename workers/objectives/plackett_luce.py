"""Plackett-Luce on rankings of any length, ties as blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.length_effect import LengthEffect, chosen_pairs
from workers.schema import RankingRecord
from workers.schema.recipe import Recipe

MOST_TIED = 10  # 2^10 sets of them are looked at


def ranking_loss(rewards: Tensor, ranks: Sequence[int]) -> Tensor:
    """-log P(ranking). rewards: [items, ...]; ranks: 1 is best. Returns [...].

    P is the product, over the places from the best, of e^r over the sum of those not yet placed (Plackett 1975; Luce
    1959). Items of equal rank are a block whose inner order is not known: the probabilities of its orders are added.
    """
    loss = rewards.new_zeros(rewards.shape[1:])
    left = list(range(len(ranks)))
    for rank in sorted(set(ranks)):
        block = [item for item in left if ranks[item] == rank]
        rest = [item for item in left if ranks[item] != rank]
        if rest:  # the last block is certain
            loss = loss - block_log_probability(rewards[block], rewards[rest])
        left = rest
    return loss


def block_log_probability(block: Tensor, rest: Tensor) -> Tensor:
    """log P(all of `block` are placed before any of `rest`), each [items, ...] -> [...].

    f(placed) = sum over i in placed of f(placed - i) e^(r_i) / (sum of all that is not in placed - i), f(none) = 1.
    """
    count = len(block)
    if count == 1:
        return block[0] - torch.logsumexp(torch.cat([block, rest]), 0)
    below = torch.logsumexp(rest, 0)
    # What is left, by the set of those placed, as bits.
    left = [
        torch.logaddexp(below, torch.logsumexp(block[missing], 0)) if missing else below
        for missing in ([i for i in range(count) if not placed >> i & 1] for placed in range(2**count))
    ]
    found: list[Tensor] = [torch.zeros_like(below)]
    for placed in range(1, 2**count):
        inside = [i for i in range(count) if placed >> i & 1]
        found.append(
            torch.logsumexp(
                torch.stack([found[placed ^ 1 << i] + block[i] - left[placed ^ 1 << i] for i in inside]), 0
            )
        )
    return found[-1]


class PlackettLuce(Objective):
    name = "plackett_luce"
    kinds = (RankingRecord,)
    reads_steps = False

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.centring = recipe.centring
        self.length: LengthEffect | None = None
        if recipe.length_control:
            self.length = LengthEffect(
                [pair for example in examples for pair in chosen_pairs(example.record)]
            )

    @classmethod
    def reject_reason(cls, record: RankingRecord, recipe: Recipe) -> str | None:
        if record.criterion != recipe.criterion:
            return f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"
        if len(set(record.ranks)) < 2:
            return "that call all equal"
        tied = max(record.ranks.count(rank) for rank in set(record.ranks) - {max(record.ranks)})
        return f"with more than {MOST_TIED} tied" if tied > MOST_TIED else None

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        losses = batch.outputs.rewards.new_zeros(len(batch.examples), batch.outputs.rewards.shape[1])
        for ranks, group in self._groups(batch).items():
            rewards = batch.outputs.rewards[group.rows]
            seen = (
                rewards
                if self.length is None
                else rewards + self.length(group.lengths.to(rewards)).unsqueeze(-1)
            )
            loss = ranking_loss(seen, ranks) / (len(ranks) - 1)  # as much as a pair
            centring = self.centring * rewards.mean(0).mul(2).square()
            losses = losses.index_put((group.places,), loss + centring)
        return losses

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """accuracy: of the pairs in the ranking that are not tied, the share in the right order."""
        accuracy = batch.outputs.rewards.new_zeros(len(batch.examples))
        for ranks, group in self._groups(batch).items():
            rewards = batch.outputs.rewards[group.rows].mean(-1)
            order = torch.tensor(ranks, device=rewards.device)
            better, worse = (order.unsqueeze(1) < order.unsqueeze(0)).nonzero(as_tuple=True)
            difference = rewards[better] - rewards[worse]
            right = (difference > 0).to(accuracy) + 0.5 * (difference == 0).to(accuracy)
            accuracy[group.places] = right.mean(0)
        return {"loss": self(batch).mean(-1), "accuracy": accuracy}

    def _groups(self, batch: ObjectiveBatch) -> "dict[tuple[int, ...], _Rankings]":
        return batch.constant("rankings", lambda: _by_ranks(batch, self.length))


@dataclass(frozen=True, slots=True)
class _Rankings:
    """places: [rankings] long, in the batch. rows: [items, rankings] long, of outputs, the best item first. lengths:
    [items, rankings], `standardised` ones, or 0."""

    places: Tensor
    rows: Tensor
    lengths: Tensor


def _by_ranks(batch: ObjectiveBatch, length: LengthEffect | None) -> dict[tuple[int, ...], _Rankings]:
    """By the ranks of their items in ascending order: rankings with the same are computed at once."""
    places: dict[tuple[int, ...], list[int]] = {}
    rows: dict[tuple[int, ...], list[list[int]]] = {}
    lengths: dict[tuple[int, ...], list[list[float]]] = {}
    for place, example in enumerate(batch.examples):
        assert isinstance(example.record, RankingRecord)
        sides = example.record.trajectories
        by_rank = sorted(
            zip(example.record.ranks, example.trajectory_indices, range(len(sides)), strict=True)
        )
        ranks = tuple(rank for rank, *_ in by_rank)
        places.setdefault(ranks, []).append(place)
        rows.setdefault(ranks, []).append([batch.output_row[index] for _, index, _ in by_rank])
        lengths.setdefault(ranks, []).append(
            [0.0 if length is None else length.standardised(sides[side]) for *_, side in by_rank]
        )
    device = batch.outputs.rewards.device
    return {
        ranks: _Rankings(
            torch.tensor(places[ranks], device=device),
            torch.tensor(rows[ranks], device=device).T,
            torch.tensor(lengths[ranks], dtype=torch.double, device=device).T,
        )
        for ranks in places
    }


OBJECTIVE = PlackettLuce
