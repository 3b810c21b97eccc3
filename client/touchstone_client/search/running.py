"""What all searches share: scored candidates, and the loop that spends a budget on many searches at once."""

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from touchstone_client.rewards import RewardClient
from touchstone_client.values import Item, Result

T = TypeVar("T")
P = TypeVar("P", bound=Hashable)
_FIRST = 4  # candidates of every search before the budget is divided by what they promise

Allocation = Literal["even", "improvement"]


@dataclass(frozen=True, slots=True)
class Scored(Generic[T]):
    """A candidate and its result. value: as the search proposed it."""

    value: T
    result: Result

    @property
    def reward(self) -> float:
        return self.result.reward


class Search(Protocol[T]):
    """One prompt's search. rewards: of all candidates so far that are complete, in order."""

    best: Scored[T] | None
    rewards: list[float]

    def propose(self) -> T | None:
        """The next candidate to score; None where there is nothing new to try."""

    def learn(self, scored: Scored[T]) -> None:
        """Takes the score of a candidate that this search proposed."""


class Scorer(Generic[P, T]):
    """Scores candidates with an endpoint. item: what to send for a candidate of a prompt, as `RewardClient.score` takes
    it; where it grows an unfinished trajectory, with the same `session`, so that a decoder computes only what is new.

    critiques: ask for what the endpoint's judges and generative models write (`/critique`), for `Refinement`. scored,
    tokens: spent so far. Raises RewardServiceError.
    """

    def __init__(
        self,
        client: RewardClient,
        item: Callable[[P, T], Item],
        *,
        critiques: bool = False,
        **options: Any,
    ) -> None:
        self._call = client.critique if critiques else client.score
        self._item = item
        self._options = {"uncertainty": False} | options
        self.scored = 0
        self.tokens = 0

    def __call__(self, asked: Sequence[tuple[P, T]]) -> list[Scored[T]]:
        results = self._call([self._item(prompt, value) for prompt, value in asked], **self._options).results
        self.scored += len(results)
        self.tokens += sum(result.tokens for result in results)
        return [Scored(value, result) for (_, value), result in zip(asked, results, strict=True)]


def run(
    searches: Mapping[P, Search[T]],
    score: Callable[[Sequence[tuple[P, T]]], Sequence[Scored[T]]],
    *,
    budget: int,
    allocation: Allocation = "even",
) -> dict[P, Scored[T] | None]:
    """By prompt, the best candidate of its search after at most `budget` scored candidates over all of them; None for a
    search that completed none. May be called again to go on with the same searches.

    allocation: `even` gives every search the same number. `improvement` gives each four, and then every next one to the
    searches whose best is expected to improve most, by `expected_improvement` with the mean and the spread of their
    rewards: prompts whose candidates are all alike get fewer. A round, one candidate of each chosen search, is one
    request. Raises ValueError for a budget below 0 and for another allocation.
    """
    if budget < 0:
        raise ValueError(f"budget is {budget}; it must be at least 0")
    if allocation not in ("even", "improvement"):
        raise ValueError(f"allocation is {allocation!r}; it must be 'even' or 'improvement'")
    unfinished = list(searches)
    while budget > 0 and unfinished:
        chosen = unfinished[:budget]
        if allocation == "improvement":
            chosen = _most_promising({prompt: searches[prompt] for prompt in unfinished}, budget)
        asked: list[tuple[P, T]] = []
        for prompt in chosen:
            value = searches[prompt].propose()
            if value is None:
                unfinished.remove(prompt)
            else:
                asked.append((prompt, value))
        for (prompt, _), scored in zip(asked, score(asked) if asked else (), strict=True):
            searches[prompt].learn(scored)
        budget -= len(asked)
    return {prompt: search.best for prompt, search in searches.items()}


def expected_improvement(mean: float, std: float, best: float) -> float:
    """E[max(x - best, 0)] for x normal: what one more candidate is expected to add. Same units as the rewards.

    Mockus, Tiesis & Zilinskas (1978); here as the rule that divides a budget of tries among prompts, the question of
    AgentTTS (arXiv 2508.00890).
    """
    if std <= 0:
        return max(mean - best, 0.0)
    z = (mean - best) / std
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return std * (z * 0.5 * math.erfc(-z / math.sqrt(2)) + density)


def _most_promising(searches: Mapping[P, Search[T]], budget: int) -> list[P]:
    """A quarter of the searches, those that are expected to improve most; before that, those with too few rewards."""
    if few := [prompt for prompt, search in searches.items() if len(search.rewards) < _FIRST]:
        return few[:budget]

    def promise(prompt: P) -> float:
        rewards = searches[prompt].rewards
        return expected_improvement(statistics.mean(rewards), statistics.stdev(rewards), max(rewards))

    return sorted(searches, key=promise, reverse=True)[: min(budget, max(1, len(searches) // 4))]
