"""In which order items are asked about: by one measure, or several, each choice counting with those before it.

What two items would tell may be the same thing. So items are chosen one by one: after each, heads are as much surer as
its answer is expected to make them, and what looks like it is no longer new. Greedy choice by expected information is
within 1 - 1/e of the best batch (BatchBALD, arXiv 1906.08158, sec. 3.2); for this posterior the step is closed: a
rank-one update, whatever the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workers.active_learning.measures import (
    CandidatePool,
    bald,
    novelty,
    predictive_gain,
    representativeness,
)
from workers.active_learning.posterior import Numbers, Posterior, sigmoid

Strategy = Literal["random", "uncertainty", "information_gain", "diversity", "representativeness", "mix"]
STRATEGIES: tuple[Strategy, ...] = (
    "random",
    "uncertainty",
    "information_gain",
    "diversity",
    "representativeness",
    "mix",
)
# What a strategy goes by, where it is not the measure of its name. `mix` wants in one number what the others want one
# by one: what teaches, about what is really scored, and what those chosen before it do not teach.
_GOES_BY: Mapping[Strategy, str] = {"mix": "predictive_gain"}
_NEED_HEADS = ("uncertainty", "information_gain", "predictive_gain")


@dataclass(frozen=True, slots=True)
class ItemRanking:
    """order: places of items, the first to be asked first. measures: by name [items], before any choice."""

    order: list[int]
    measures: dict[str, Numbers]


@dataclass(frozen=True, slots=True)
class AnnotatedData:
    """posterior: None before there is anything to fit one to. item_features: [m, 2 d] of the annotated items.

    traffic: [n, d], features of what is really scored; empty: the pool stands for it.
    """

    posterior: Posterior | None
    item_features: Numbers
    traffic: Numbers


def rank_items(
    pool: CandidatePool,
    known: AnnotatedData,
    strategy: Strategy,
    *,
    count: int,
    seed: int,
) -> ItemRanking:
    """All items in order: the first `count` one by one, the others by what they are worth after those.

    Without a posterior, strategies that need one take items at random.
    """
    draws = np.random.default_rng(seed).random(len(pool.items))
    state = _SelectionState(pool, known)
    measures = state.measures()
    name = _GOES_BY.get(strategy, strategy)
    order: list[int] = []
    if name == "random" or (name in _NEED_HEADS and known.posterior is None):
        return ItemRanking([int(place) for place in np.argsort(-draws, kind="stable")], measures)
    free = np.ones(len(pool.items), dtype=bool)
    for _ in range(min(count, len(pool.items))):
        worth = np.where(free, _worth(state, name, draws), -np.inf)
        best = int(worth.argmax())
        order.append(best)
        free[best] = False
        state.choose(best)
    worth = np.where(free, _worth(state, name, draws), -np.inf)
    rest = np.argsort(-worth, kind="stable")[: len(pool.items) - len(order)]
    return ItemRanking([*order, *(int(place) for place in rest)], measures)


def _worth(state: "_SelectionState", name: str, draws: Numbers) -> Numbers:
    """[items]: a measure over its largest; ties are broken at random."""
    values = state.measure(name)
    largest = float(values[np.isfinite(values)].max(initial=0.0))
    return np.where(np.isfinite(values), values / largest if largest > 0 else 1.0, 1.0) + 1e-9 * draws


class _SelectionState:
    """The measures of a pool as items are chosen from it."""

    def __init__(self, pool: CandidatePool, known: AnnotatedData) -> None:
        self.pool = pool
        posterior = known.posterior
        self.has_posterior = posterior is not None
        self.margin = (
            np.zeros(len(pool.differences)) if posterior is None else posterior.margin(pool.differences)
        )
        self.covariance = None if posterior is None else posterior.covariance.copy()
        self.variance = (
            np.zeros(len(pool.differences)) if posterior is None else posterior.spread(pool.differences) ** 2
        )
        self.distance = novelty(pool.item_features, known.item_features)
        self.density = representativeness(pool, known.traffic if len(known.traffic) else pool.features)

    def measures(self) -> dict[str, Numbers]:
        names = ["diversity", "representativeness"]
        return {name: self.measure(name) for name in ([*_NEED_HEADS] if self.has_posterior else []) + names}

    def measure(self, name: str) -> Numbers:
        if name == "uncertainty":
            return self.pool.mean_per_item(np.sqrt(np.maximum(self.variance, 0.0)))
        if name == "information_gain":
            return self.pool.mean_per_item(bald(self.margin, np.sqrt(np.maximum(self.variance, 0.0))))
        if name == "predictive_gain":
            assert self.covariance is not None
            return self.pool.mean_per_item(
                predictive_gain(
                    self.pool.differences,
                    self.margin,
                    self.variance,
                    self.covariance,
                    self.density[self.pool.owner],
                )
            )
        return self.distance if name == "diversity" else self.density

    def choose(self, item: int) -> None:
        """As if it had been judged: heads are surer, and what looks like it is known."""
        self.distance = np.minimum(
            self.distance, np.linalg.norm(self.pool.item_features - self.pool.item_features[item], axis=1)
        )
        if self.covariance is None:
            return
        for row in np.flatnonzero(self.pool.owner == item):
            x = self.pool.differences[row]
            along = self.covariance @ x
            chance = sigmoid(self.margin[row] / np.sqrt(1 + np.pi / 8 * self.variance[row]))
            weight = chance * (1 - chance)
            along *= np.sqrt(weight / (1 + weight * (x @ along)))
            self.covariance -= np.outer(along, along)
            self.variance = self.variance - (self.pool.differences @ along) ** 2


def measure_shares(measures: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """By measure [items], the share of the pool that an item is at least as good as, above 0 to 1.

    Left out is what tells no items apart yet.
    """
    return {
        name: np.searchsorted(np.sort(values), values, side="right") / len(values)
        for name, values in measures.items()
        if len(values) and np.isfinite(values).all()
    }


def rank_scores(order: Sequence[int]) -> Numbers:
    """[items]: 1 for the first, falling evenly to above 0."""
    found = np.empty(len(order))
    found[list(order)] = 1 - np.arange(len(order)) / max(1, len(order))
    return found
