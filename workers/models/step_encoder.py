"""The `step-encoder` model: encoder, mixer, and how values at agent steps become a reward."""

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.models.cache import ChunkCache
from workers.models.encoder import encode
from workers.models.mixer import Mixer
from workers.text import GROUNDING, ChunkRenderer, Rendered


@dataclass(frozen=True, slots=True)
class Batch:
    """Rendered trajectories as tensors; equal chunks stand once in `chunks`.

    chunks: framed ids. place [b, t]: row of `chunks`; sources [b, t]; grounding [b, t, numbers] float64; mask [b, t].
    """

    chunks: list[tuple[int, ...]]
    place: Tensor
    sources: Tensor
    grounding: Tensor
    mask: Tensor


def collate(batch: Sequence[Rendered], renderer: ChunkRenderer) -> Batch:
    longest = max(len(one.chunks) for one in batch)
    rows: dict[tuple[int, ...], int] = {}
    place = torch.zeros(len(batch), longest, dtype=torch.long)
    sources = torch.zeros(len(batch), longest, dtype=torch.long)
    grounding = torch.zeros(len(batch), longest, len(GROUNDING), dtype=torch.float64)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, one in enumerate(batch):
        count = len(one.chunks)
        framed = [renderer.framed(chunk) for chunk in one.chunks]
        place[row, :count] = torch.tensor([rows.setdefault(ids, len(rows)) for ids in framed])
        sources[row, :count] = torch.tensor([chunk.source for chunk in one.chunks])
        grounding[row, :count] = torch.tensor(one.grounding, dtype=torch.float64)
        mask[row, :count] = True
    return Batch(list(rows), place, sources, grounding, mask)


class StepEncoder(nn.Module):
    """Encoder and mixer. frozen: the encoder is not trained, and its embeddings may be cached."""

    def __init__(self, encoder: nn.Module, mixer: Mixer, *, frozen: bool) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(not frozen)
        self.mixer = mixer
        self.frozen = frozen

    def train(self, mode: bool = True) -> "StepEncoder":
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def embed(
        self,
        chunks: Sequence[tuple[int, ...]],
        *,
        cache: ChunkCache | None = None,
        name: bytes = b"",
        bfloat16: bool = False,
    ) -> tuple[Tensor, set[int]]:
        """[chunks, hidden], and which of them came from the cache. name: of the encoder, part of the cache's keys."""
        if cache is None:
            return encode(self.encoder, chunks, bfloat16=bfloat16), set()
        keys = [chunk_key(name, ids) for ids in chunks]
        found = {row: hit for row, key in enumerate(keys) if (hit := cache.get(key)) is not None}
        missing = [row for row in range(len(chunks)) if row not in found]
        device = next(self.encoder.parameters()).device
        out = torch.empty(len(chunks), self.mixer.config.hidden, device=device)
        if missing:
            with torch.no_grad():
                out[missing] = encode(self.encoder, [chunks[row] for row in missing], bfloat16=bfloat16)
            for row, embedding in zip(missing, out[missing].cpu(), strict=True):
                cache.put(keys[row], embedding)
        if found:
            out[list(found)] = torch.stack(list(found.values())).to(device)
        return out, set(found)

    def values(self, batch: Batch, embeddings: Tensor) -> Tensor:
        """[b, 1 + t, ensemble]; place 0 is before everything. In the mixer's own precision."""
        precise = next(self.mixer.parameters())
        x = embeddings[batch.place.to(precise.device)].to(precise.dtype)
        values: Tensor = self.mixer(
            x,
            batch.sources.to(precise.device),
            batch.grounding.to(precise),
            batch.mask.to(precise.device),
        )
        return values


def chunk_key(name: bytes, ids: Sequence[int]) -> bytes:
    return hashlib.blake2b(name + array("q", ids).tobytes(), digest_size=16).digest()


def read_values(values: Tensor, one: Rendered) -> tuple[Tensor, Tensor]:
    """values [1 + t, k] of one trajectory -> V_0 [k] and V_t [agent steps that are kept, k]."""
    kept = [1 + read for read in one.reads if read is not None]
    return values[one.start], values[kept]


def aggregate(baseline: Tensor, steps: Tensor, aggregation: str) -> Tensor:
    """One trajectory's raw reward [k] of V_0 [k] and V_t [steps, k].

    value: V_T. Otherwise V_t is itself the reward of step t: their sum, mean or min.
    """
    if aggregation == "value":
        return steps[-1]
    if aggregation == "sum":
        return baseline * 0 + steps.sum(0)
    return steps.mean(0) if aggregation == "mean" else steps.amin(0)


def by_tokens(rendered: Sequence[Rendered], budget: int = 16_384) -> list[list[Rendered]]:
    """In order, in batches of at most `budget` tokens, or of one that has more."""
    batches: list[list[Rendered]] = []
    used = budget
    for one in rendered:
        if used + one.tokens > budget:
            batches.append([])
            used = 0
        batches[-1].append(one)
        used += one.tokens
    return batches
