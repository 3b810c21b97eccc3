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

from workers.acquire.measures import (
    Pool,
    bald,
    novelty,
    representativeness,
)
from workers.acquire.posterior import Numbers, Posterior, sigmoid

Strategy = Literal["random", "uncertainty", "information_gain", "diversity", "representativeness", "mix"]
STRATEGIES: tuple[Strategy, ...] = (
    "random",
    "uncertainty",
    "information_gain",
    "diversity",
    "representativeness",
    "mix",
)
# How much each measure counts in `mix`: exponents of a product, so that an item has to be good at all of them.
MIX: Mapping[str, float] = {"information_gain": 1.0, "diversity": 0.5, "representativeness": 0.25}
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Chosen:
    """order: places of items, the first to be asked first. measures: by name [items], before any choice."""

    order: list[int]
    measures: dict[str, Numbers]


@dataclass(frozen=True, slots=True)
class Known:
    """posterior: None before there is anything to fit one to. looks: [m, 2 d] of what was asked about, as in `Pool`.

    traffic: [n, d], features of what is really scored; empty: the pool stands for it.
    """

    posterior: Posterior | None
    looks: Numbers
    traffic: Numbers


def choose(
    pool: Pool,
    known: Known,
    strategy: Strategy,
    *,
    count: int,
    seed: int,
) -> Chosen:
    """All items in order: the first `count` one by one, the others by what they are worth after those.

    Without a posterior, what needs one counts for nothing; where that leaves nothing, items are taken at random.
    """
    draws = np.random.default_rng(seed).random(len(pool.items))
    state = _State(pool, known)
    measures = state.measures()
    weights = _weights(strategy, known)
    order: list[int] = []
    if not weights:
        return Chosen([int(place) for place in np.argsort(-draws, kind="stable")], measures)
    free = np.ones(len(pool.items), dtype=bool)
    for _ in range(min(count, len(pool.items))):
        worth = np.where(free, _worth(state, weights, draws), -np.inf)
        best = int(worth.argmax())
        order.append(best)
        free[best] = False
        state.choose(best)
    worth = np.where(free, _worth(state, weights, draws), -np.inf)
    rest = np.argsort(-worth, kind="stable")[: len(pool.items) - len(order)]
    return Chosen([*order, *(int(place) for place in rest)], measures)


def _weights(strategy: Strategy, known: Known) -> dict[str, float]:
    wanted: dict[str, float] = dict(MIX) if strategy == "mix" else {strategy: 1.0}
    wanted.pop("random", None)
    if known.posterior is None:
        wanted = {
            name: one for name, one in wanted.items() if name not in ("uncertainty", "information_gain")
        }
    return wanted


def _worth(state: "_State", weights: Mapping[str, float], draws: Numbers) -> Numbers:
    """[items]: a weighted product of measures, each over its largest; what is equal is told apart by chance."""
    total = np.zeros(len(draws))
    for name, weight in weights.items():
        values = state.measure(name)
        largest = float(values[np.isfinite(values)].max(initial=0.0))
        shares = np.where(np.isfinite(values), values / largest if largest > 0 else 1.0, 1.0)
        total += weight * np.log(np.maximum(shares, _LEAST))
    return total + 1e-9 * draws


class _State:
    """The measures of a pool as items are chosen from it."""

    def __init__(self, pool: Pool, known: Known) -> None:
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
        self.distance = novelty(pool.looks, known.looks)
        self.density = representativeness(pool, known.traffic if len(known.traffic) else pool.features)

    def measures(self) -> dict[str, Numbers]:
        names = ["diversity", "representativeness"]
        return {
            name: self.measure(name)
            for name in (["uncertainty", "information_gain"] if self.has_posterior else []) + names
        }

    def measure(self, name: str) -> Numbers:
        if name == "uncertainty":
            return self.pool.of_items(np.sqrt(np.maximum(self.variance, 0.0)))
        if name == "information_gain":
            return self.pool.of_items(bald(self.margin, np.sqrt(np.maximum(self.variance, 0.0))))
        return self.distance if name == "diversity" else self.density

    def choose(self, item: int) -> None:
        """As if it had been judged: heads are surer, and what looks like it is known."""
        self.distance = np.minimum(
            self.distance, np.linalg.norm(self.pool.looks - self.pool.looks[item], axis=1)
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


def shares(measures: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """By measure [items], the share of the pool that an item is at least as good as, above 0 to 1.

    Left out is what tells no items apart yet.
    """
    return {
        name: np.searchsorted(np.sort(values), values, side="right") / len(values)
        for name, values in measures.items()
        if len(values) and np.isfinite(values).all()
    }


def scores(order: Sequence[int]) -> Numbers:
    """[items]: 1 for the first, falling evenly to above 0."""
    found = np.empty(len(order))
    found[list(order)] = 1 - np.arange(len(order)) / max(1, len(order))
    return found
