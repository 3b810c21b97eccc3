"""A small seedable random generator whose numbers are the same on every machine and Python version."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """SplitMix64, seeded by the SHA-256 of a text. Equal seeds give equal throws, forever."""

    def __init__(self, seed: str) -> None:
        self._state = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")

    def uniform(self) -> float:
        """A number in [0, 1)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        return ((mixed ^ (mixed >> 31)) >> 11) / 2**53

    def below(self, n: int) -> int:
        return int(self.uniform() * n)

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        return self.uniform() < share

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        rest = list(options)
        return [rest.pop(self.below(len(rest))) for _ in options]

    def normal(self, sigma: float = 1.0) -> float:
        """Near enough normal: twelve uniforms summed, so that no library's logarithm decides a digit."""
        return sigma * (sum(self.uniform() for _ in range(12)) - 6.0)
