"""The `step-encoder` backbone: chunks through a bidirectional encoder, and a causal mixer over them."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.errors import RewardError
from workers.models.backbones.base import Backbone
from workers.models.backbones.encoder import encode
from workers.models.backbones.mixer import Mixer
from workers.models.cache.embeddings import ChunkCache
from workers.models.states import States, join
from workers.text import GROUNDING, ChunkRenderer, Chunks
from workers.text.chunks import FRAME

_AHEAD = 512  # chunks encoded between two looks at whether to stop


@dataclass(frozen=True, slots=True)
class ChunkBatch:
    """Rendered trajectories as tensors; equal chunks stand once in `chunks`.

    chunks: framed ids. place [b, t]: row of `chunks`; sources [b, t]; grounding [b, t, numbers] float64; mask [b, t].
    """

    chunks: list[tuple[int, ...]]
    place: Tensor
    sources: Tensor
    grounding: Tensor
    mask: Tensor


def collate(batch: Sequence[Chunks], renderer: ChunkRenderer) -> ChunkBatch:
    longest = max(len(item.chunks) for item in batch)
    rows: dict[tuple[int, ...], int] = {}
    place = torch.zeros(len(batch), longest, dtype=torch.long)
    sources = torch.zeros(len(batch), longest, dtype=torch.long)
    grounding = torch.zeros(len(batch), longest, len(GROUNDING), dtype=torch.float64)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, item in enumerate(batch):
        count = len(item.chunks)
        framed = [renderer.framed(chunk) for chunk in item.chunks]
        place[row, :count] = torch.tensor([rows.setdefault(ids, len(rows)) for ids in framed])
        sources[row, :count] = torch.tensor([chunk.source for chunk in item.chunks])
        grounding[row, :count] = torch.tensor(item.grounding, dtype=torch.float64)
        mask[row, :count] = True
    return ChunkBatch(list(rows), place, sources, grounding, mask)


class StepEncoder(Backbone):
    """frozen: the encoder is not trained, its embeddings may be cached. name: of the encoder, in the cache's keys."""

    kind = "step-encoder"

    def __init__(
        self, encoder: nn.Module, mixer: Mixer, renderer: ChunkRenderer, *, frozen: bool, name: str = ""
    ) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(not frozen)
        self.mixer = mixer
        self.renderer: ChunkRenderer = renderer
        self.frozen = frozen
        self.name = name.encode()
        self.width = mixer.config.width

    def train(self, mode: bool = True) -> "StepEncoder":
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def inherit(self, parent: Backbone) -> None:
        assert isinstance(parent, StepEncoder)
        if parent.mixer.config.ground_scale != self.mixer.config.ground_scale:
            raise RewardError(
                "the parent was made by an earlier version, whose mixer saw lengths and overlaps at another scale; "
                "train without a parent once.",
                pointer="/parent",
            )
        self.mixer.load_state_dict(parent.mixer.state_dict(), strict=True)

    def is_encoder(self, name: str) -> bool:
        return name.startswith("encoder.")

    @property
    def shares(self) -> bool:
        return not self.frozen

    def new_cache(self, max_bytes: int) -> ChunkCache | None:
        """For a training: an encoder that changes has nothing to remember."""
        return ChunkCache(max_bytes) if self.frozen else None

    def states(self, batch: Sequence[Chunks], *, cache: ChunkCache | None = None) -> States:
        """Place 0 of the mixer is before everything; a step's state is that after its last chunk."""
        collated = collate(batch, self.renderer)
        embeddings, hits = self.embed(collated.chunks, cache=cache)
        precise = next(self.mixer.parameters())
        mixed = self.mixer(
            embeddings[collated.place.to(precise.device)].to(precise.dtype),
            collated.sources.to(precise.device),
            collated.grounding.to(precise),
            collated.mask.to(precise.device),
        )
        parts = [
            (row[item.start], row[[1 + read for read in item.reads if read is not None]])
            for item, row in zip(batch, mixed, strict=True)
        ]
        return join(
            parts,
            [_cached(item, row, hits) for item, row in zip(batch, collated.place.tolist(), strict=True)],
        )

    def embed(
        self, chunks: Sequence[tuple[int, ...]], *, cache: ChunkCache | None = None
    ) -> tuple[Tensor, set[int]]:
        """[chunks, hidden], and which of them came from the cache. Gradients reach the encoder only without one."""
        if cache is None:
            return encode(self.encoder, chunks, bfloat16=self.in_bfloat16), set()
        keys = [chunk_key(self.name, ids) for ids in chunks]
        found = {row: hit for row, key in enumerate(keys) if (hit := cache.get(key)) is not None}
        missing = [row for row in range(len(chunks)) if row not in found]
        out = torch.empty(len(chunks), self.mixer.config.hidden, device=self.device)
        if missing:
            with torch.no_grad():
                out[missing] = encode(
                    self.encoder, [chunks[row] for row in missing], bfloat16=self.in_bfloat16
                )
            for row, embedding in zip(missing, out[missing].cpu(), strict=True):
                cache.put(keys[row], embedding)
        if found:
            out[list(found)] = torch.stack(list(found.values())).to(out.device)
        return out, set(found)

    def encode_ahead(self, batch: Sequence[Chunks], cache: ChunkCache) -> Iterator[int]:
        """Every chunk, always in the same groups.

        Encoded when a batch first asks for it, a chunk would have other company in a run that is resumed than in one
        that was not stopped, and its embedding another rounding: their weights would drift apart.
        """
        framed = {self.renderer.framed(chunk) for item in batch for chunk in item.chunks}
        chunks = sorted(framed, key=lambda ids: (len(ids), ids))
        for start in range(0, len(chunks), _AHEAD):
            self.embed(chunks[start : start + _AHEAD], cache=cache)
            yield min(start + _AHEAD, len(chunks))

    def cost(self, batch: Sequence[Chunks]) -> int:
        """Frozen: chunks through the mixer. Else the tokens of distinct chunks."""
        if self.frozen:
            return sum(len(item.chunks) for item in batch)
        return sum(len(ids) + FRAME for ids in {chunk.ids for item in batch for chunk in item.chunks})


def chunk_key(name: bytes, ids: Sequence[int]) -> bytes:
    return hashlib.blake2b(name + array("q", ids).tobytes(), digest_size=16).digest()


def _cached(chunks: Chunks, row: list[int], hits: set[int]) -> int:
    return sum(
        len(chunk.ids) + FRAME for chunk, place in zip(chunks.chunks, row, strict=False) if place in hits
    )
