"""Both revisions' scores of the same items, summed: what the rules of a release are decided on. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

NUMBERS = ("active", "candidate", "length", "steps")
_PRODUCTS = list(combinations_with_replacement(range(len(NUMBERS)), 2))
MOMENTS = len(NUMBERS) + len(_PRODUCTS)
COUNTS = (
    "pairs",
    "failed",
    "uncertain_active",
    "uncertain_candidate",
    "outside_active",
    "outside_candidate",
)


@dataclass(frozen=True, slots=True)
class ScorePair:
    """One item scored by both, or (scores None) one that the candidate could not score. uncertain, outside: of the
    active, of the candidate. tokens: of the item; steps: the agent's."""

    release: int
    stage: str
    policy_version: str
    scores: tuple[float, float] | None
    tokens: int = 0
    steps: int = 0
    uncertain: tuple[bool, bool] = (False, False)
    outside: tuple[bool, bool] = (False, False)


@dataclass(slots=True)
class PairStatistics:
    """moments: sums of NUMBERS, then of their products two by two (as `combinations_with_replacement` orders them);
    length and steps as log(1 + n)."""

    pairs: int = 0
    failed: int = 0
    uncertain_active: int = 0
    uncertain_candidate: int = 0
    outside_active: int = 0
    outside_candidate: int = 0
    moments: list[float] = field(default_factory=lambda: [0.0] * MOMENTS)

    def add(self, pair: ScorePair) -> None:
        if pair.scores is None:
            self.failed += 1
            return
        self.pairs += 1
        self.uncertain_active += pair.uncertain[0]
        self.uncertain_candidate += pair.uncertain[1]
        self.outside_active += pair.outside[0]
        self.outside_candidate += pair.outside[1]
        numbers = (*pair.scores, math.log1p(pair.tokens), math.log1p(pair.steps))
        products = (numbers[first] * numbers[second] for first, second in _PRODUCTS)
        self.moments = [old + new for old, new in zip(self.moments, (*numbers, *products), strict=True)]

    def merge(self, other: Any) -> None:
        """other: anything with these fields."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.moments = [old + new for old, new in zip(self.moments, other.moments, strict=True)]

    @property
    def items(self) -> int:
        return self.pairs + self.failed

    def mean(self, name: str) -> float | None:
        return self.moments[NUMBERS.index(name)] / self.pairs if self.pairs else None

    def correlation(self, first: str, second: str) -> float | None:
        """Pearson's; None where one of them is constant."""
        if self.pairs < 2:
            return None
        i, j = sorted((NUMBERS.index(first), NUMBERS.index(second)))
        spread = math.sqrt(self._covariance(i, i) * self._covariance(j, j))
        if spread <= 1e-12:
            return None
        return max(-1.0, min(1.0, self._covariance(i, j) / spread))

    def _covariance(self, i: int, j: int) -> float:
        products = self.moments[len(NUMBERS) + _PRODUCTS.index((i, j))]
        found = products / self.pairs - self.moments[i] * self.moments[j] / self.pairs**2
        return max(0.0, found) if i == j else found


def group_pairs(pairs: Iterable[ScorePair]) -> dict[tuple[int, str, str], PairStatistics]:
    """By release, stage and policy version."""
    found: dict[tuple[int, str, str], PairStatistics] = {}
    for pair in pairs:
        found.setdefault((pair.release, pair.stage, pair.policy_version), PairStatistics()).add(pair)
    return found


def merge_pairs(rows: Iterable[Any]) -> PairStatistics:
    total = PairStatistics()
    for row in rows:
        total.merge(row)
    return total
