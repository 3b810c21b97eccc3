"""A reward model that does arithmetic on letters: deterministic, quick, and it can be made to fail."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workers.engine import Content, ModelScore
from workers.errors import RewardError
from workers.schema import Features, Text, TokenIds
from workers.schema.conditions import Condition
from workers.schema.records import Source


@dataclass(frozen=True)
class FakeRendered:
    steps: tuple[tuple[int, ...], ...]
    truncated: bool = False
    family: bytes = b""

    def shared(self, other: "FakeRendered") -> int:
        return len(self.steps[0]) if self.steps[0] == other.steps[0] else 0

    @property
    def tokens(self) -> int:
        return sum(len(step) for step in self.steps)

    @property
    def key(self) -> bytes:
        return hashlib.sha256(repr(self.steps).encode()).digest()


@dataclass
class FakeModel:
    """A step's reward is `factor` times the sum of its letters' codes over 1000. Letters cut off past `limit`.

    The text "refused" is refused by render, "nan" scores NaN, "broken" breaks the whole batch. A criterion's score is
    the length of its name plus the first letter's code over 1000.
    """

    factor: float = 1.0
    median: float = 0.5
    std: float = 2.0
    spread: float | None = 0.1
    aggregation: str = "value"
    limit: int = 10_000
    manifest: dict[str, Any] = field(default_factory=lambda: {"template_fingerprint": "fake"})
    batches: list[int] = field(default_factory=list)
    gate: threading.Event | None = None
    criteria: dict[str, dict[str, Any]] = field(default_factory=dict)
    rewrites: bool = False
    named_sources: frozenset[Source] = frozenset()
    conditioned: tuple[Condition, ...] = ()
    sees_pictures: bool = False
    seen: list[Any] = field(default_factory=list)
    compares: bool = False
    gives_reasons: bool = False
    precision: str = "float32"
    sessions: list[Any] = field(default_factory=list)
    ood_score: float | None = None
    quantiles: Mapping[float, float] = field(default_factory=dict)

    @property
    def scores_criteria(self) -> bool:
        return bool(self.criteria)

    @property
    def warm_up_content(self) -> Content:
        return Text("Hello.")

    def count(self, text: str) -> int:
        return len(text)

    def render(self, content: Content, *, session: Any = None) -> FakeRendered:
        if session is not None:
            self.sessions.append(session)
        self.seen.append(content)
        if isinstance(content, Features):
            raise RewardError("this model reads text; it has no features.", pointer="/features")
        if isinstance(content, Text):
            texts = [content.text]
        elif isinstance(content, TokenIds):
            return FakeRendered((content.ids,))
        else:
            texts = [content.steps[index].text for index in content.agent_steps]
        if "refused" in texts:
            raise RewardError("this text is refused.")
        return FakeRendered(
            tuple(tuple(map(ord, text[: self.limit])) for text in texts),
            truncated=any(len(text) > self.limit for text in texts),
        )

    def score(
        self, batch: Sequence[FakeRendered], *, cache: Any, criteria: Sequence[str] = ()
    ) -> list[ModelScore]:
        if self.gate is not None and not self.gate.wait(timeout=20):
            raise TimeoutError("the gate was not opened")
        self.batches.append(len(batch))
        if any(step == tuple(map(ord, "broken")) for entry in batch for step in entry.steps):
            raise RewardError("this item breaks the batch.")
        return [self._score(entry, criteria) for entry in batch]

    def _score(self, rendered: FakeRendered, criteria: Sequence[str]) -> ModelScore:
        steps = tuple(self.factor * sum(step) / 1000 for step in rendered.steps)
        nan = any(step == tuple(map(ord, "nan")) for step in rendered.steps)
        raw = float("nan") if nan else 0.25 + sum(steps)
        by_criterion = {name: len(name) + rendered.steps[0][0] / 1000 for name in criteria}
        return ModelScore(
            raw=raw,
            offset=0.25,
            std=self.spread,
            step_rewards=steps,
            tokens=rendered.tokens,
            truncated=rendered.truncated,
            criteria=by_criterion,
            ood_score=self.ood_score,
            quantiles=self.quantiles,
        )
