"""The `hybrid` backbone: the linear one, whose features have the embedding of the agent's text of each step among them.

The embedding of a step is the mean over its chunks of the vectors of unit length that a middle layer of a frozen
encoder gives them, not scaled again; 0 where the agent wrote nothing. The last layers of a sentence encoder keep what
a text is about; those before them also tell how it is written (Jawahar, Sagot and Seddah 2019), which people judge as
well. The embedding stands after n-grams and structure, times a weight that is chosen with the ridge penalty. Everything
else is as with a linear model: the losses are convex, and a step's reward is the sum of what its words, events and
embedding are worth.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workers.errors import RewardError
from workers.models.backbones.base import Backbone
from workers.models.backbones.chunk_encoder import EmbeddingCache, embed_ahead, embed_chunks, hidden_size
from workers.models.backbones.condition_entries import CONDITIONED_WIDTH, FIRST_CONDITION
from workers.models.backbones.design_matrix import DesignMatrix
from workers.models.backbones.layer_encoder import LayerEncoder, middle_layer
from workers.models.backbones.linear import LinearBackbone, Readout
from workers.models.backbones.step_entries import FIRST_EMBEDDING, Floats
from workers.models.cache.embeddings import ChunkCache
from workers.text import HybridRenderer, HybridTexts

_WEIGHTS = (0.0, 1.0, 2.0)
_SERVED_BYTES = 64 * 1024**2  # where no one keeps a cache: of one batch


class ChunkEncoder:
    """A frozen encoder on its device. No part of the module: it stays float32, and has files of its own.

    name: of its weights. layer: the one that is read, two thirds of the way up by default. `name` is in the keys of
    caches, which a step-encoder with the same weights shares.
    """

    def __init__(self, encoder: nn.Module, name: str, layer: int | None = None) -> None:
        self.whole = encoder.requires_grad_(False).eval()
        self.layer = middle_layer(encoder) if layer is None else layer
        self.module = LayerEncoder(self.whole, self.layer)
        self.name = f"{name}/{self.layer}".encode()
        self.hidden = hidden_size(encoder)


class HybridBackbone(LinearBackbone):
    """cache: the matrix of a training (`new_cache`), or a `ChunkCache` of embeddings in serving."""

    kind = "hybrid"
    embedding_weight = 1.0  # where there is too little to choose it by

    def __init__(
        self,
        encoder: ChunkEncoder,
        renderer: HybridRenderer,
        readout: Readout,
        *,
        cumulative: bool,
        columns: Tensor | None = None,
    ) -> None:
        super().__init__(renderer, readout, cumulative=cumulative, columns=columns)
        self.encoder = encoder

    @property
    def embedding_weights(self) -> tuple[float, ...]:
        if not self.channels:
            return _WEIGHTS
        if "embedding" not in self.channels:
            return (0.0,)
        return _WEIGHTS if len(self.channels) > 1 else (1.0,)  # alone, the ridge penalty scales it too

    def new_cache(self, max_bytes: int) -> "HybridMatrix":
        return HybridMatrix(self, ChunkCache(max_bytes or _SERVED_BYTES))

    def scaled(self, weights: Tensor) -> Tensor:
        return self._times_embeddings(weights, self.embedding_weight)

    def unscaled(self, weights: Tensor) -> Tensor:
        return self._times_embeddings(weights, 1 / self.embedding_weight if self.embedding_weight else 0.0)

    def _times_embeddings(self, weights: Tensor, factor: float) -> Tensor:
        is_embedding = ((self.columns >= FIRST_EMBEDDING) & (self.columns < FIRST_CONDITION)).cpu()
        scale = 1.0 + (factor - 1.0) * is_embedding.to(weights.dtype)
        return weights * scale.view(-1, *[1] * (weights.ndim - 1))

    def inherit(self, parent: Backbone) -> None:
        assert isinstance(parent, HybridBackbone)
        theirs, own = parent.encoder, self.encoder
        if (theirs.layer, theirs.hidden) != (own.layer, own.hidden):
            raise RewardError(
                f"the parent reads layer {theirs.layer} of its encoder ({theirs.hidden} numbers), this model layer "
                f"{own.layer} ({own.hidden}); train without a parent once.",
                pointer="/parent",
            )
        super().inherit(parent)

    def step_embeddings(
        self, batch: Sequence[HybridTexts], *, cache: EmbeddingCache | None = None
    ) -> list[Floats]:
        return [*HybridMatrix(self, cache or ChunkCache(_SERVED_BYTES)).embeddings(batch)]

    def _design(self, cache: Any) -> DesignMatrix:
        if cache is None or isinstance(cache, DesignMatrix):
            return super()._design(cache)
        return HybridMatrix(self, cache)


class HybridMatrix(DesignMatrix):
    """A design matrix with embeddings. chunks: where those of chunks are kept."""

    def __init__(self, backbone: HybridBackbone, chunks: EmbeddingCache) -> None:
        hidden = FIRST_EMBEDDING + backbone.encoder.hidden
        super().__init__(CONDITIONED_WIDTH if backbone.renderer.conditioned else hidden)
        self._encoder, self._bfloat16 = backbone.encoder, backbone.in_bfloat16
        self.chunks = chunks

    def embed_ahead(self, batch: Sequence[Any]) -> Iterator[int]:
        encoder = self._encoder
        yield from embed_ahead(
            encoder.module, encoder.name, _distinct(batch), self.chunks, bfloat16=self._bfloat16
        )

    def embeddings(self, batch: Sequence[HybridTexts]) -> Iterable[Floats]:
        """By item, [steps, hidden]."""
        chunks = sorted(_distinct(batch))
        found = np.zeros((0, self._encoder.hidden))
        if chunks:
            encoder = self._encoder
            with torch.no_grad():
                embedded, _ = embed_chunks(
                    encoder.module, encoder.name, chunks, cache=self.chunks, bfloat16=self._bfloat16
                )
            found = embedded.cpu().double().numpy()
        row = {ids: place for place, ids in enumerate(chunks)}
        for item in batch:
            steps = np.zeros((len(item.chunks), self._encoder.hidden))
            for place, step in enumerate(item.chunks):
                if step:
                    steps[place] = found[[row[ids] for ids in step]].mean(0)
            yield steps


def _distinct(batch: Sequence[HybridTexts]) -> set[tuple[int, ...]]:
    return set(chain.from_iterable(chain.from_iterable(item.chunks for item in batch)))
