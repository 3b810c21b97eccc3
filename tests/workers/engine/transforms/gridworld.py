"""A small gridworld whose best policies are known exactly, and a learner whose rewards an endpoint's transforms make.

Start top left, goal bottom right (+1, ends), a pit next to the straight way (-1, ends). An episode also ends after
`most_steps`.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.item_score import ItemScore
from workers.engine.transforms import TransformChain

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
START, PIT = (0, 0), (1, 2)
Cell = tuple[int, int]
Move = tuple[Cell, int, Cell]


@dataclass(frozen=True)
class Grid:
    size: int = 4
    most_steps: int = 60

    @property
    def goal(self) -> Cell:
        return (self.size - 1, self.size - 1)

    @property
    def cells(self) -> list[Cell]:
        return [(row, column) for row in range(self.size) for column in range(self.size)]

    def moved(self, cell: Cell, action: int) -> Cell:
        row, column = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
        return (row, column) if 0 <= row < self.size and 0 <= column < self.size else cell

    def ends(self, cell: Cell) -> bool:
        return cell in (self.goal, PIT)

    def reward_at(self, cell: Cell) -> float:
        return {self.goal: 1.0, PIT: -1.0}.get(cell, 0.0)

    def nearness(self, cell: Cell) -> float:
        """0 at the start, 1 at the goal."""
        return (cell[0] + cell[1]) / (2 * (self.size - 1))

    def item_score(self, moves: Sequence[Move], potential: Any = None) -> ItemScore:
        """What an endpoint makes of the moves: the outcome as reward, the potential as a component next to it."""
        potential = potential or self.nearness
        gains = tuple(self.reward_at(after) for _, _, after in moves)
        path = (potential(moves[0][0]), *(potential(after) for _, _, after in moves))
        numbers: dict[tuple[Cell, int], int] = {}
        repeats = tuple(
            numbers.setdefault((cell, action), place) for place, (cell, action, _) in enumerate(moves)
        )
        total = sum(gains)
        paths = {"near": path, "won": (0.0, *gains)}
        return ItemScore(total, total, 0.0, None, gains, potentials=paths, repeats=repeats)

    def best_actions(self, reward: Any, gamma: float) -> dict[Cell, frozenset[int]]:
        """By value iteration to 1e-12: the best actions in each open cell. reward(cell, action, after) -> float."""
        values = dict.fromkeys(self.cells, 0.0)
        moves = {
            (cell, action): (after := self.moved(cell, action), float(reward(cell, action, after)))
            for cell in self.cells
            if not self.ends(cell)
            for action in range(4)
        }
        open_cells = list(dict.fromkeys(cell for cell, _ in moves))

        def worth(cell: Cell, action: int) -> float:
            after, paid = moves[cell, action]
            return paid + gamma * values[after]

        change = 1.0
        while change > 1e-12:
            change = 0.0
            for cell in open_cells:
                found = max(worth(cell, action) for action in range(4))
                change, values[cell] = max(change, abs(found - values[cell])), found
        best = {}
        for cell in open_cells:
            worths = [worth(cell, action) for action in range(4)]
            best[cell] = frozenset(action for action in range(4) if worths[action] > max(worths) - 1e-9)
        return best

    def walks(self, length: int) -> list[list[Move]]:
        """Every walk of `length` moves from the start, cut where it ends."""
        walks: list[list[Move]] = [[]]
        for _ in range(length):
            longer: list[list[Move]] = []
            for walk in walks:
                cell = walk[-1][2] if walk else START
                if self.ends(cell):
                    longer.append(walk)
                else:
                    longer += [[*walk, (cell, action, self.moved(cell, action))] for action in range(4)]
            walks = longer
        return walks


@dataclass
class Learner:
    """Tabular Q-learning on the step rewards of whole episodes, newest move first."""

    grid: Grid
    chain: TransformChain
    seed: int
    gamma: float = 0.95
    rate: float = 0.5
    explores: float = 0.1

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.worths = {(cell, action): 0.0 for cell in self.grid.cells for action in range(4)}

    def act(self, cell: Cell, *, greedy: bool = False) -> int:
        if not greedy and self.random.random() < self.explores:
            return self.random.randrange(4)
        worths = [self.worths[cell, action] for action in range(4)]
        return self.random.choice([action for action in range(4) if worths[action] == max(worths)])

    def episode(self, *, greedy: bool = False) -> list[Move]:
        cell, moves = START, []
        while not self.grid.ends(cell) and len(moves) < self.grid.most_steps:
            action = self.act(cell, greedy=greedy)
            after = self.grid.moved(cell, action)
            moves.append((cell, action, after))
            cell = after
        return moves

    def learn(self, moves: Sequence[Move]) -> None:
        (score,) = self.chain.apply([self.grid.item_score(moves)])
        for (cell, action, after), gain in reversed(list(zip(moves, score.gains, strict=True))):
            best = 0.0 if self.grid.ends(after) else max(self.worths[after, other] for other in range(4))
            target = gain + self.gamma * best
            self.worths[cell, action] += self.rate * (target - self.worths[cell, action])

    def episodes_until_best(self, most: int = 2000) -> int:
        """Episodes before five greedy ones in a row reach the goal by a shortest way."""
        in_a_row = 0
        for episode in range(most):
            self.learn(self.episode())
            found = self.episode(greedy=True)
            is_best = len(found) == 2 * (self.grid.size - 1) and found[-1][2] == self.grid.goal
            in_a_row = in_a_row + 1 if is_best else 0
            if in_a_row == 5:
                return episode + 1
        return most
