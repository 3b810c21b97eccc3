"""Made-up trajectories whose words follow Zipf's law, and comparisons by a reward that is linear in their words.

A task has several trajectories, and every two of them are compared: by the logistic function of the difference of
their rewards (Bradley and Terry 1952). How often who knows the rewards is right, is therefore known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.records import ObservationResult, ToolCall

_EXPONENT = 1.05  # of Zipf's law: the share of the word of rank r is proportional to r ** -_EXPONENT
_SYLLABLES = [
    first + last for first in "bdfgklmnprstvz" for last in ("a", "e", "i", "o", "u", "an", "er", "is")
]
_TOOLS = ("search_orders", "read_file", "send_message", "update_record", "list_events", "run_query")
PER_TASK = 4  # trajectories; each two of them are a comparison


@dataclass(frozen=True, slots=True)
class Sizes:
    """steps: of the agent, in each trajectory. message, arguments, observation: words of each, on average. spread: the
    standard deviation of the rewards' differences, in log odds."""

    vocabulary: int = 50_000
    steps: int = 10
    message: int = 12
    arguments: int = 2
    observation: int = 8
    spread: float = 3.0


class ZipfWorld:
    """What is drawn follows from the seed and from the order in which it is drawn."""

    def __init__(self, seed: int = 0, sizes: Sizes | None = None) -> None:
        self.sizes = sizes or Sizes()
        self._dice = np.random.default_rng(seed)
        self._words = _names(self.sizes.vocabulary)
        ranks = np.arange(1, self.sizes.vocabulary + 1, dtype=np.float64)
        shares = ranks**-_EXPONENT
        self._cumulative = np.cumsum(shares / shares.sum())
        worth = self._dice.standard_normal(self.sizes.vocabulary)
        # Of the sum over a trajectory's words; a difference has twice its variance.
        own = self.sizes.steps * self.sizes.message
        deviation = np.sqrt(own * float((worth**2 * shares / shares.sum()).sum()))
        self._worth = worth * (self.sizes.spread / (np.sqrt(2) * deviation))
        self._drawn = 0

    def comparisons(self, count: int) -> "Comparisons":
        """So many, of as many new tasks as they need."""
        records: list[PreferenceRecord] = []
        attainable: list[float] = []
        while len(records) < count:
            task = Task(id=f"task-{self._drawn}")
            self._drawn += 1
            request = Step(source="user", message=(Part(text=self._text(self._draw(20))),))
            made = [self._trajectory(task, request, number) for number in range(PER_TASK)]
            for (first, a), (second, b) in combinations(made, 2):
                chance = 1 / (1 + np.exp(b - a))
                choice = "a" if self._dice.random() < chance else "b"
                records.append(PreferenceRecord(a=first, b=second, choice=choice, annotator="made up"))
                attainable.append(max(chance, 1 - chance))
        return Comparisons(records[:count], float(np.mean(attainable[:count])))

    def _trajectory(self, task: Task, request: Step, number: int) -> tuple[Trajectory, float]:
        """And its reward: the sum of what the words of its messages are worth."""
        steps, reward = [request], 0.0
        for place in range(self.sizes.steps):
            message = self._draw(self.sizes.message)
            reward += float(self._worth[message].sum())
            steps.append(self._step(message, f"call-{place}"))
        return Trajectory(steps=tuple(steps), task=task, id=f"{task.id}-{number}"), reward

    def _step(self, message: NDArray[np.int64], call: str) -> Step:
        tool = _TOOLS[int(self._dice.integers(len(_TOOLS)))]
        arguments = {"query": self._text(self._draw(self.sizes.arguments))}
        seen = Part(text=self._text(self._draw(self.sizes.observation)))
        return Step(
            source="agent",
            message=(Part(text=self._text(message)),),
            tool_calls=(ToolCall(id=call, name=tool, arguments=arguments),),
            observation=(ObservationResult(call_id=call, content=(seen,)),),
        )

    def _draw(self, mean: int) -> NDArray[np.int64]:
        """Words; half to one and a half times as many as the mean."""
        count = int(self._dice.integers(max(1, mean // 2), mean + mean // 2 + 1))
        return np.searchsorted(self._cumulative, self._dice.random(count)).astype(np.int64)

    def _text(self, places: NDArray[np.int64]) -> str:
        return " ".join(map(self._words.__getitem__, places.tolist())) + "."


@dataclass(frozen=True, slots=True)
class Comparisons:
    """attainable: the expected accuracy on them of who knows the true rewards."""

    records: list[PreferenceRecord]
    attainable: float


def _names(count: int) -> list[str]:
    """Distinct words, the frequent ones short."""
    return list(_spelled(count))


def _spelled(count: int) -> Iterator[str]:
    base = len(_SYLLABLES)
    for number in range(count):
        left, name = number, _SYLLABLES[number % base]
        while (left := left // base) > 0:
            name += _SYLLABLES[left % base]
        yield name
