"""Beam search: the best paths of each length are the ones that grow."""

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from touchstone_client.search.running import Scored

A = TypeVar("A", bound=Hashable)


class BeamSearch(Generic[A]):
    """Scores every path as it grows, and lengthens the `width` best of each length by at most `branch` actions each.

    actions: what may follow a path; none where the path is complete. Only complete paths count for `best`. Candidates
    are unfinished trajectories, so the endpoint must be one that rates these: aggregation `value`, or an outcome or
    progress model. After the last length it starts again with paths it has not scored. Raises ValueError for width or
    branch below 1.
    """

    def __init__(
        self,
        actions: Callable[[tuple[A, ...]], Sequence[A]],
        *,
        width: int = 2,
        branch: int = 4,
        dice: random.Random,
    ) -> None:
        if width < 1 or branch < 1:
            raise ValueError(f"width is {width} and branch is {branch}; both must be at least 1")
        self._actions, self._width, self._branch = actions, width, branch
        self._dice = dice
        self._known: set[tuple[A, ...]] = set()
        self._waiting: list[tuple[A, ...]] = []
        self._level: list[Scored[tuple[A, ...]]] = []
        self.best: Scored[tuple[A, ...]] | None = None
        self.rewards: list[float] = []

    def propose(self) -> tuple[A, ...] | None:
        if not self._waiting:
            self._waiting = self._longer()
        return self._waiting.pop(0) if self._waiting else None

    def learn(self, scored: Scored[tuple[A, ...]]) -> None:
        self._known.add(scored.value)
        if self._actions(scored.value):
            self._level.append(scored)
            return
        self.rewards.append(scored.reward)
        if self.best is None or scored.reward > self.best.reward:
            self.best = scored

    def _longer(self) -> list[tuple[A, ...]]:
        """The next paths: of the best of this length, or, where none may grow, from the start again."""
        grown = sorted(self._level, key=lambda scored: scored.reward, reverse=True)[: self._width]
        self._level = []
        found = [path for scored in grown for path in self._after(scored.value)]
        return found or self._after(())

    def _after(self, path: tuple[A, ...]) -> list[tuple[A, ...]]:
        new = [(*path, action) for action in self._actions(path) if (*path, action) not in self._known]
        return self._dice.sample(new, min(self._branch, len(new)))
