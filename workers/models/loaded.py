"""A reward model ready to score."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError
from workers.models.cache import ChunkCache
from workers.models.step_encoder import StepEncoder, aggregate, collate, read_values
from workers.text import ChunkRenderer, Content, Rendered
from workers.text.chunks import FRAME


@dataclass(frozen=True, slots=True)
class RawScore:
    """In the model's own units.

    baseline: V_0 for `value`, else 0. std: of `raw` over the ensemble's heads, None for a single head.
    step_rewards, values: by agent_step, a dropped step (see `dropped`) having the reward 0 and the value before it.
    They sum to raw - baseline for `value` and `sum`. tokens: rendered; cached_tokens: of those, not encoded again.
    """

    raw: float
    baseline: float
    std: float | None
    step_rewards: tuple[float, ...]
    values: tuple[float, ...]
    tokens: int
    cached_tokens: int
    truncated: bool
    dropped: tuple[int, ...] = ()


class LoadedModel:
    """render may be called from any thread; score from one at a time (a lock sees to it)."""

    def __init__(
        self, model: StepEncoder, renderer: ChunkRenderer, manifest: dict[str, Any], encoder_name: str
    ) -> None:
        # The mixer is small: in float64 its rounding is nothing beside the encoder's.
        model.mixer.double()
        self.model = model.eval().requires_grad_(False)
        self.renderer = renderer
        self.manifest = manifest
        self.encoder_name = encoder_name.encode()
        self.bfloat16 = False
        self._lock = threading.Lock()

    @property
    def median(self) -> float:
        return float(self.manifest["reward"]["median"])

    @property
    def std(self) -> float:
        return float(self.manifest["reward"]["std"])

    @property
    def aggregation(self) -> str:
        return str(self.manifest["aggregation"])

    def render(self, content: Content) -> Rendered:
        """Tokens of an item; no tensor is touched. Raises RewardError for what this model cannot read."""
        return self.renderer.render(content)

    def score(self, batch: Sequence[Rendered], *, cache: ChunkCache | None = None) -> list[RawScore]:
        """In order. The same item gets the same score whatever it is batched with, to float32 rounding.

        cache: of chunk embeddings, kept by the caller. Raises RewardError if a score is not finite.
        """
        if not batch:
            return []
        with self._lock, torch.no_grad():
            packed = collate(batch, self.renderer)
            embeddings, hits = self.model.embed(
                packed.chunks, cache=cache, name=self.encoder_name, bfloat16=self.bfloat16
            )
            values = self.model.values(packed, embeddings).cpu()
        cached = [
            sum(
                len(chunk.ids) + FRAME
                for chunk, row in zip(one.chunks, rows.tolist(), strict=False)
                if row in hits
            )
            for one, rows in zip(batch, packed.place, strict=True)
        ]
        return [
            self._raw_score(one, row, tokens) for one, row, tokens in zip(batch, values, cached, strict=True)
        ]

    def _raw_score(self, one: Rendered, values: Tensor, cached_tokens: int) -> RawScore:
        first, kept = read_values(values, one)
        heads = aggregate(first, kept, self.aggregation)
        if not bool(heads.isfinite().all()):
            raise RewardError(
                "the model's score is not a finite number; train it anew with a lower learning rate."
            )
        baseline = float(first.mean()) if self.aggregation == "value" else 0.0
        numbers = iter(kept.mean(-1).tolist())
        rewards, by_step, last = [], [], baseline
        for read in one.reads:
            value = last if read is None else next(numbers)
            if self.aggregation == "value":
                rewards.append(value - last)
                last = value
            else:
                value = 0.0 if read is None else value
                rewards.append(value)
            by_step.append(value)
        return RawScore(
            raw=float(heads.mean()) if self.aggregation != "min" else min(kept.mean(-1).tolist()),
            baseline=baseline,
            std=float(heads.std(correction=0)) if len(heads) > 1 else None,
            step_rewards=tuple(rewards),
            values=tuple(by_step),
            tokens=one.tokens,
            cached_tokens=cached_tokens,
            truncated=one.truncated,
            dropped=one.dropped,
        )
