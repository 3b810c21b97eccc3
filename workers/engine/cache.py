"""Exact duplicates: an item that was scored is not scored again. Bounded in bytes, oldest use out."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from workers.engine.protocol import RawScore


@dataclass(frozen=True, slots=True)
class Remembered:
    """A RawScore whose every token came from the cache."""

    raw: float
    baseline: float
    std: float | None
    step_rewards: tuple[float, ...]
    tokens: int
    cached_tokens: int
    truncated: bool
    criteria: Mapping[str, float] = field(default_factory=dict)
    ood_score: float | None = None
    critique: str | None = None

    @classmethod
    def of(cls, score: RawScore) -> "Remembered":
        return cls(
            raw=score.raw,
            baseline=score.baseline,
            std=score.std,
            step_rewards=tuple(score.step_rewards),
            tokens=score.tokens,
            cached_tokens=score.tokens,
            truncated=score.truncated,
            criteria=dict(score.criteria),
            ood_score=score.ood_score,
            critique=score.critique,
        )

    @property
    def nbytes(self) -> int:
        """About what it takes in CPython, key and table slot included."""
        said = 4 * len(self.critique) if self.critique else 0
        return 700 + 32 * len(self.step_rewards) + said + sum(200 + len(name) for name in self.criteria)


# A served model's identity, what the item rendered to, and the criteria.
Key = tuple[int, bytes, tuple[str, ...]]


class DuplicateCache:
    """Not thread-safe: the batcher holds its lock."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._entries: OrderedDict[Key, Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Remembered | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, score: RawScore) -> None:
        remembered = Remembered.of(score)
        previous = self._entries.pop(key, None)
        self.nbytes += remembered.nbytes - (previous.nbytes if previous else 0)
        self._entries[key] = remembered
        while self.nbytes > self.max_bytes and self._entries:
            _, oldest = self._entries.popitem(last=False)
            self.nbytes -= oldest.nbytes

    def forget(self, model: int) -> None:
        """Drop everything of a model that is no longer served."""
        for key in [key for key in self._entries if key[0] == model]:
            self.nbytes -= self._entries.pop(key).nbytes
