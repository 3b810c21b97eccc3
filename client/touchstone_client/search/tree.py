"""Monte Carlo tree search over the actions of one trajectory."""

import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from touchstone_client.search.running import Scored

A = TypeVar("A", bound=Hashable)


@dataclass(slots=True)
class _Node(Generic[A]):
    """highest, total: of the rewards of complete paths through it. prefix: the value of the path up to it by the step
    rewards of the latest of them, None where there are none. exhausted: every complete path through it is scored."""

    children: "dict[A, _Node[A]]" = field(default_factory=dict)
    visits: int = 0
    total: float = 0.0
    highest: float = -math.inf
    prefix: float | None = None
    exhausted: bool = False


class TreeSearch(Generic[A]):
    """A path is a tuple of actions. Each proposal follows the tree by UCT to a place where an action is new, takes it,
    and lets `complete` write the rest; what is scored is the complete path.

    actions: what may follow a path; none where the path is complete. complete: a whole path that begins with the given
    one, as the policy would go on. exploration: of UCT, on rewards scaled to 0..1 by the extremes met. widening: a node
    met n times has at most widening * sqrt(n) actions (progressive widening, Coulom 2007). best_share: how much of a
    node's value is the highest reward below it; the rest is their mean. step_share: how much is the value of its own
    path by step rewards instead, where results have a step reward for each action.

    UCT: Kocsis & Szepesvari (2006). With a reward model's values in place of roll-outs to an outcome: MASTER (arXiv
    2501.14304). Raises ValueError for shares outside 0 to 1.
    """

    def __init__(
        self,
        actions: Callable[[tuple[A, ...]], Sequence[A]],
        complete: Callable[[tuple[A, ...]], tuple[A, ...]],
        *,
        exploration: float = 0.5,
        widening: float = 2.0,
        best_share: float = 0.5,
        step_share: float = 0.0,
        dice: random.Random,
    ) -> None:
        for name, share in (("best_share", best_share), ("step_share", step_share)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} is {share}; it must be from 0 to 1")
        self._actions, self._complete = actions, complete
        self._exploration, self._widening = exploration, widening
        self._best_share, self._step_share = best_share, step_share
        self._dice = dice
        self._root: _Node[A] = _Node()
        self._rewards, self._prefixes = (math.inf, -math.inf), (math.inf, -math.inf)  # lowest and highest met
        self.best: Scored[tuple[A, ...]] | None = None
        self.rewards: list[float] = []

    def propose(self) -> tuple[A, ...] | None:
        """Raises ValueError where `complete` returned a path that does not begin as it was told."""
        node = self._root
        path: tuple[A, ...] = ()
        while not node.exhausted and (choices := self._actions(path)):
            new = [action for action in choices if action not in node.children]
            known = [action for action, child in node.children.items() if not child.exhausted]
            if new and (not known or len(node.children) < self._widening * math.sqrt(max(node.visits, 1))):
                return self._completed((*path, self._dice.choice(new)))
            scores = {action: self._bound(node, node.children[action]) for action in known}
            action = max(scores, key=lambda name: scores[name])
            path, node = (*path, action), node.children[action]
        return None if node.exhausted else path

    def learn(self, scored: Scored[tuple[A, ...]]) -> None:
        self.rewards.append(scored.reward)
        if self.best is None or scored.reward > self.best.reward:
            self.best = scored
        self._back_up(scored)

    def _completed(self, start: tuple[A, ...]) -> tuple[A, ...]:
        path = self._complete(start)
        if path[: len(start)] != start:
            raise ValueError(f"complete returned {path!r}, which does not begin with {start!r}")
        return path

    def _bound(self, parent: _Node[A], child: _Node[A]) -> float:
        value = self._best_share * _scaled(child.highest, self._rewards)
        value += (1 - self._best_share) * _scaled(child.total / child.visits, self._rewards)
        if child.prefix is not None:
            value = (1 - self._step_share) * value + self._step_share * _scaled(child.prefix, self._prefixes)
        return value + self._exploration * math.sqrt(math.log(max(parent.visits, 1)) / child.visits)

    def _back_up(self, scored: Scored[tuple[A, ...]]) -> None:
        prefixes = _prefix_values(scored)
        self._rewards = _widened(self._rewards, [scored.reward])
        self._prefixes = _widened(self._prefixes, prefixes)
        nodes = [self._root]
        for action in scored.value:
            nodes.append(nodes[-1].children.setdefault(action, _Node()))
        for place, node in enumerate(nodes):
            node.visits += 1
            node.total += scored.reward
            node.highest = max(node.highest, scored.reward)
            if prefixes:
                node.prefix = prefixes[place]
        for length in range(len(scored.value), -1, -1):
            children = nodes[length].children
            choices = self._actions(scored.value[:length])
            nodes[length].exhausted = all(name in children and children[name].exhausted for name in choices)


def _widened(extremes: tuple[float, float], values: Sequence[float]) -> tuple[float, float]:
    return min((extremes[0], *values)), max((extremes[1], *values))


def _scaled(value: float, extremes: tuple[float, float]) -> float:
    """0 at the lowest, 1 at the highest; 0.5 where all are equal."""
    low, high = extremes
    return (value - low) / (high - low) if high > low else 0.5


def _prefix_values(scored: Scored[tuple[A, ...]]) -> list[float]:
    """raw less the step rewards to come, before and after each action, in the model's units; none where the steps are
    not the actions'."""
    steps = scored.result.steps or ()
    if not steps or len(steps) != len(scored.value):
        return []
    values = [scored.result.raw]
    for step in reversed(steps):
        values.append(values[-1] - step)
    return values[::-1]
