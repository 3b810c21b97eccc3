"""Searches that draw whole candidates: the best of n, and changes of the best one so far."""

import random
from collections.abc import Callable
from typing import Generic, TypeVar

from touchstone_client.search.running import Scored

T = TypeVar("T")


class BestOfN(Generic[T]):
    """Keeps the best of independent candidates. draw: a new candidate, as a sample of the policy."""

    def __init__(self, draw: Callable[[], T]) -> None:
        self._draw = draw
        self.best: Scored[T] | None = None
        self.rewards: list[float] = []

    def propose(self) -> T | None:
        return self._draw()

    def learn(self, scored: Scored[T]) -> None:
        self.rewards.append(scored.reward)
        if self.best is None or scored.reward > self.best.reward:
            self.best = scored


class Refinement(BestOfN[T]):
    """Changes the best candidate so far, and keeps a change with a higher reward.

    revise: a changed copy of a scored candidate; it can read `result.steps` (which step is weakest) and, from a Scorer
    with critiques, `result.critiques`. fresh: share of candidates that are drawn new, so that a poor start is left.
    Iterative decoding with a verifier's feedback: arXiv 2504.01931. Raises ValueError for a share outside 0 to 1.
    """

    def __init__(
        self,
        draw: Callable[[], T],
        revise: Callable[[Scored[T]], T],
        *,
        fresh: float = 0.25,
        dice: random.Random,
    ) -> None:
        if not 0 <= fresh <= 1:
            raise ValueError(f"fresh is {fresh}; it must be from 0 to 1")
        super().__init__(draw)
        self._revise, self._fresh, self._dice = revise, fresh, dice

    def propose(self) -> T | None:
        if self.best is None or self._dice.random() < self._fresh:
            return self._draw()
        return self._revise(self.best)
