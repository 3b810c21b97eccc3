"""What the engine needs of a model. `workers.models.LoadedModel` has this shape; so may another backend."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workers.text.rendered import Content

__all__ = ["Content", "Rated", "RawScore", "Rendered", "Scorer"]


class Rendered(Protocol):
    """An item made ready for the model. key: equal for items the model cannot tell apart.

    family: equal for items that begin alike, where the model gains by having them in one batch; else empty. shared:
    how many tokens of it need no computing beside `other`, of the same family.
    """

    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def key(self) -> bytes: ...
    @property
    def family(self) -> bytes: ...
    def shared(self, other: Any) -> int: ...


class RawScore(Protocol):
    """In the model's own units. baseline: V_0, or 0. std: disagreement of the ensemble, None without one.
    ood_score: above 1 is out of distribution; None where the model does not know. critique: of one that writes."""

    @property
    def raw(self) -> float: ...
    @property
    def baseline(self) -> float: ...
    @property
    def std(self) -> float | None: ...
    @property
    def step_rewards(self) -> Sequence[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def criteria(self) -> Mapping[str, float]: ...
    @property
    def ood_score(self) -> float | None: ...
    @property
    def critique(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Rated:
    """What a rule says of an item: a number, and what each agent step adds to it."""

    value: float
    steps: tuple[float, ...]

    @classmethod
    def of(cls, steps: Sequence[float]) -> "Rated":
        return cls(math.fsum(steps), tuple(steps))


class Scorer(Protocol):
    """What the engine asks for a score.

    render and count may be called from any thread; score only from the model thread.

    compares: whether it has `render_pair(a, b)`, of which `score` is the log-odds that `a` is the better one.
    rewrites: whether its template changes what earlier steps look like when the next one comes. greeting: something it
    can read.
    """

    @property
    def greeting(self) -> Content: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...
    @property
    def median(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def aggregation(self) -> str: ...
    @property
    def criteria(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def precision(self) -> str: ...
    @property
    def scores_criteria(self) -> bool: ...
    @property
    def rewrites(self) -> bool: ...
    @property
    def compares(self) -> bool: ...
    def render(self, content: Content, *, session: Any = None) -> Rendered: ...
    def count(self, text: str) -> int: ...
    def score(
        self, batch: Sequence[Any], *, cache: Any, criteria: Sequence[str] = ()
    ) -> Sequence[RawScore]: ...
