"""What is asked of a server that computes a decoder, and how the model that it computes is recognised. No torch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.errors import Unavailable

# By place and head: the logits of a sequence classifier.
Logits = Sequence[Sequence[float]]
# What bfloat16 and other kernels may lose of the probe's values. Another model is off by 1.
_SAME = 0.1
_FEW_PLACES = 4


class WrongModel(Unavailable):
    """A server answers, but computes something else."""


@dataclass(frozen=True, slots=True)
class LogitsPrompt:
    """ids: tokens. places: those after which the logits of the heads are wanted, ascending, at least one."""

    ids: Sequence[int]
    places: Sequence[int]


# The logits of each prompt, in order. Raises Unavailable; may be called by several threads.
Ask = Callable[[Sequence[LogitsPrompt]], list[Logits]]


@dataclass(frozen=True, slots=True)
class ModelProbe:
    """A few tokens and the logits of the model after each of them, stored when it was saved; see `kinds.decoder`.

    values: [tokens][heads]. max_tokens: the most that the model reads.
    """

    ids: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    max_tokens: int

    @property
    def heads(self) -> int:
        return len(self.values[0])

    def prompt(self, *, whole: bool = True) -> LogitsPrompt:
        """whole: read after every token; else after a few that are spread, for servers that compute each by itself."""
        last = len(self.ids) - 1
        if whole:
            return LogitsPrompt(self.ids, range(last + 1))
        few = min(_FEW_PLACES, last + 1)
        return LogitsPrompt(self.ids, [last - step * (last + 1) // few for step in reversed(range(few))])

    def require_same(self, places: Sequence[int], logits: Logits) -> None:
        """Raises WrongModel unless `logits` are this model's at `places` of the probe."""
        wanted = [value for place in places for value in self.values[place]]
        found = [value for row in logits for value in row]
        squares = sum(value * value for row in self.values for value in row) * len(places) / len(self.ids)
        missed = sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
        off = math.sqrt(missed / max(squares, 1e-24))
        if not off <= _SAME:
            raise WrongModel(
                f"the server computes another model: what it says of the artifact's probe is off by {off:.2g} of it. "
                "Start it with this model's folder, as `export_model` writes it."
            )
