"""The `step-encoder` backbone: a bidirectional encoder of chunks, and a small causal transformer (mixer) over them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from workers.errors import RewardError
from workers.models.backbones.base import Backbone
from workers.models.backbones.chunk_encoder import embed_ahead, embed_chunks
from workers.models.backbones.layer_encoder import layers_above
from workers.models.backbones.picture_encoder import PictureEncoder
from workers.models.backbones.picture_projection import PictureProjection
from workers.models.backbones.pooling import EmbeddingPooling
from workers.models.cache.embeddings import ChunkCache
from workers.models.states import States
from workers.schema.conditions import CONDITIONS, Condition
from workers.text import GROUNDING, SOURCES, ChunkRenderer, Chunks
from workers.text.chunks import TURNED_STEP
from workers.text.pictures import Picture

SIMILARITIES = 3
_OWN = ("agent", "reasoning")  # sources of what the agent wrote
# Shares, cosines and logarithms differ by about a tenth from chunk to chunk; embeddings, once normalised, by one. What
# is so much smaller is hardly learnt from: a length that decides everything was missed.
GROUND_SCALE = 8.0
_SCALED_BY = 256  # pictures, of which the scale of their numbers is taken
_AHEAD = 64  # pictures encoded between two checks for a stop


@dataclass(frozen=True, slots=True)
class ChunkBatch:
    """Rendered trajectories as tensors; equal chunks stand once in `chunks`.

    chunks: framed ids. place [b, t]: row of `chunks`; sources [b, t]; grounding [b, t, numbers] float64; mask [b, t].
    overlap: [b, t, 2 * CONDITIONS] float64, None where no model of these reads conditions. pictures: equal ones once;
    picture_place [b, t]: row of them, -1 where a chunk is text. turned
    [b, t]: True for the chunks of conditions that are turned around.
    """

    chunks: list[tuple[int, ...]]
    place: Tensor
    sources: Tensor
    grounding: Tensor
    mask: Tensor
    pictures: list[Picture]
    picture_place: Tensor
    overlap: Tensor | None = None
    turned: Tensor | None = None


def collate(batch: Sequence[Chunks], renderer: ChunkRenderer) -> ChunkBatch:
    longest = max(len(item.chunks) for item in batch)
    rows: dict[tuple[int, ...], int] = {}
    place = torch.zeros(len(batch), longest, dtype=torch.long)
    sources = torch.zeros(len(batch), longest, dtype=torch.long)
    grounding = torch.zeros(len(batch), longest, len(GROUNDING), dtype=torch.float64)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    pictures: dict[Picture, int] = {}
    picture_place = torch.full((len(batch), longest), -1, dtype=torch.long)
    for row, item in enumerate(batch):
        count = len(item.chunks)
        framed = [renderer.framed(chunk.ids) for chunk in item.chunks]
        place[row, :count] = torch.tensor([rows.setdefault(ids, len(rows)) for ids in framed])
        for column, chunk in enumerate(item.chunks):
            if chunk.picture is not None:
                picture_place[row, column] = pictures.setdefault(chunk.picture, len(pictures))
        sources[row, :count] = torch.tensor([chunk.source for chunk in item.chunks])
        grounding[row, :count] = torch.tensor(item.grounding, dtype=torch.float64)
        mask[row, :count] = True
    batched = ChunkBatch(list(rows), place, sources, grounding, mask, list(pictures), picture_place)
    if not renderer.conditioned:
        return batched
    overlap = torch.zeros(len(batch), longest, 2 * len(CONDITIONS), dtype=torch.float64)
    turned = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, item in enumerate(batch):
        overlap[row, : len(item.chunks)] = torch.tensor(item.overlap, dtype=torch.float64)
        turned[row, : len(item.chunks)] = torch.tensor([chunk.step == TURNED_STEP for chunk in item.chunks])
    return replace(batched, overlap=overlap, turned=turned)


@dataclass(frozen=True, slots=True)
class MixerConfig:
    """ground_scale: what the grounding numbers are multiplied by; artifacts from before it was said have 1.
    conditioned: the conditions that it reads. picture_size: numbers of a cell of a picture; 0: it sees none."""

    hidden: int  # of the encoder
    width: int = 128
    layers: int = 1
    attention_heads: int = 4
    grounding: bool = True
    dropout: float = 0.0
    ground_scale: float = 1.0
    conditioned: tuple[Condition, ...] = ()
    picture_size: int = 0


class Mixer(nn.Module):
    """states[b, t]: after chunk t, which has seen chunks 0..t only.

    A learnt start stands before the first chunk, so that there is a state before anything was said.
    """

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        self.config = config
        self.normalise = nn.LayerNorm(config.hidden)
        self.project = nn.Linear(config.hidden, config.width)
        sources = len(SOURCES) + (len(CONDITIONS) if config.conditioned else 0)
        self.source = nn.Embedding(sources, config.width)
        self.ground = nn.Linear(len(GROUNDING) + SIMILARITIES, config.width) if config.grounding else None
        self.start = nn.Parameter(torch.zeros(config.width))
        self.position_scale = nn.Parameter(torch.tensor(0.1))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.conditions = ConditionGates(config) if config.conditioned else None
        self.pictures = (
            PictureProjection(config.picture_size, config.width, config.dropout)
            if config.picture_size
            else None
        )

    def forward(
        self,
        embeddings: Tensor,
        sources: Tensor,
        grounding: Tensor,
        mask: Tensor,
        overlap: Tensor | None = None,
        pictures: Tensor | None = None,
        picture_place: Tensor | None = None,
        turned: Tensor | None = None,
    ) -> Tensor:
        """embeddings [b, t, hidden], sources [b, t] long, grounding [b, t, numbers], mask [b, t] bool (True: a chunk),
        overlap [b, t, 2 * CONDITIONS] and turned [b, t] bool of a model that reads conditions. pictures [pictures,
        cells, picture_size] and picture_place [b, t], of a model that sees, where the batch has any.

        Returns [b, 1 + t, width]; place 0 is the start.
        """
        x = self.project(self.dropout(self.normalise(embeddings))) + self.source(sources)
        if self.pictures is not None and pictures is not None and picture_place is not None:
            is_picture = picture_place >= 0
            seen = self.pictures(pictures)[picture_place.clamp(min=0)] + self.source(sources)
            x = torch.where(is_picture.unsqueeze(-1), seen, x)
            embeddings = embeddings * ~is_picture.unsqueeze(-1)  # like no text, and no text is like it
        if self.ground is not None:
            similar = similarities(embeddings, sources, mask)
            x = x + self.ground(self.config.ground_scale * torch.cat([grounding, similar], -1))
        if self.conditions is not None:
            assert overlap is not None and turned is not None
            x = self.conditions(x, embeddings, sources, mask, overlap, turned)
        x = torch.cat([self.start.expand(len(x), 1, -1), x], 1)
        x = x + self.position_scale * positions(x.shape[1], self.config.width).to(x)
        for block in self.blocks:
            x = block(x)  # causal, and padding is on the right: a real chunk never sees any
        return x


class ConditionGates(nn.Module):
    """What each chunk has to do with each condition: products of the two embeddings and the words they share; and a
    gate by the condition on all that is known of the chunk (FiLM, Perez et al. 2018), so that one can turn the sign of
    what counts. Conditions that are not given change nothing; one that is turned around changes all of it by the
    opposite.
    """

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        self.hidden, self.scale = config.hidden, config.ground_scale
        self.names = config.conditioned
        self.products = _linears(self.names, config.hidden, config.width)
        self.numbers = _linears(self.names, 3, config.width)
        self.gates = _linears(self.names, config.hidden, config.width)
        with torch.no_grad():
            for parameter in self.gates.parameters():
                parameter.zero_()

    def forward(
        self, x: Tensor, embeddings: Tensor, sources: Tensor, mask: Tensor, overlap: Tensor, turned: Tensor
    ) -> Tensor:
        """x [b, t, width]; the others as for `Mixer`. Returns [b, t, width]."""
        gate = torch.zeros_like(x[:, :1])
        for name in self.names:
            place = CONDITIONS.index(name)
            is_stated = ((sources == len(SOURCES) + place) & mask).unsqueeze(1)  # [b, 1, t]
            stated = functional.normalize(_mean(embeddings.transpose(1, 2), is_stated), dim=-1).unsqueeze(1)
            product = embeddings * stated  # 0 where it is not stated
            shared = torch.cat([product.sum(-1, keepdim=True), overlap[..., 2 * place : 2 * place + 2]], -1)
            sign = 1 - 2 * (is_stated & turned.unsqueeze(1)).any(-1, keepdim=True).to(x)  # [b, 1, 1]
            more = self.products[name](self.hidden * product) + self.numbers[name](self.scale * shared)
            x = x + sign * more
            gate = gate + sign * self.gates[name](math.sqrt(self.hidden) * stated)
        return x * (1 + gate)


def _linears(names: Sequence[str], size: int, width: int) -> nn.ModuleDict:
    return nn.ModuleDict({name: nn.Linear(size, width, bias=False) for name in names})


class Block(nn.Module):
    """Pre-norm transformer block with causal attention."""

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        width, self.n_heads, self.p = config.width, config.attention_heads, config.dropout
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(b, t, 3, self.n_heads, width // self.n_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(b, t, width)))
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm_feed(x)))))


def positions(length: int, width: int) -> Tensor:
    """[length, width] sinusoids (Vaswani et al. 2017, section 3.5), float64."""
    place = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10_000.0) / width))
    angles = place * rate
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]


def similarities(embeddings: Tensor, sources: Tensor, mask: Tensor) -> Tensor:
    """[b, t, SIMILARITIES]: cosines of each chunk with what came before: highest and mean with others' chunks,
    highest with the agent's own. 0 where there is nothing before it. embeddings: of unit length."""
    t = embeddings.shape[1]
    cosine = embeddings @ embeddings.transpose(1, 2)
    before = torch.ones(t, t, dtype=torch.bool, device=mask.device).tril(-1) & mask.unsqueeze(1)
    own = ((sources == SOURCES.index("agent")) | (sources == SOURCES.index("reasoning"))).unsqueeze(1)
    given_cosine, own_cosine = (before & ~own), (before & own)
    return torch.stack(
        [_highest(cosine, given_cosine), _mean(cosine, given_cosine), _highest(cosine, own_cosine)], -1
    )


def _highest(values: Tensor, where: Tensor) -> Tensor:
    highest = values.masked_fill(~where, -2.0).amax(-1)
    return torch.where(where.any(-1), highest, torch.zeros_like(highest))


def _mean(values: Tensor, where: Tensor) -> Tensor:
    return (values * where).sum(-1) / where.sum(-1).clamp(min=1)


class StepEncoder(Backbone):
    """frozen: the encoder is not trained, its embeddings may be cached. name: of the encoder, in the cache's keys.
    layer_decay: of an encoder that is trained, each layer learns at so much of the rate of the one above it.
    picture_encoder: of a model that sees; frozen always."""

    kind = "step-encoder"

    def __init__(
        self,
        encoder: nn.Module,
        mixer: Mixer,
        renderer: ChunkRenderer,
        *,
        frozen: bool,
        name: str = "",
        pooling: EmbeddingPooling | None = None,
        layer_decay: float = 1.0,
        picture_encoder: PictureEncoder | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(not frozen)
        self.pooling = (pooling or EmbeddingPooling()).requires_grad_(not frozen)
        self.layer_decay = layer_decay
        self.mixer = mixer
        self.renderer: ChunkRenderer = renderer
        self.frozen = frozen
        self.name = name.encode()
        self.width = mixer.config.width
        self.picture_encoder = None if picture_encoder is None else picture_encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> "StepEncoder":
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
            self.pooling.eval()
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
        return name.startswith(("encoder.", "pooling."))

    def rate_factor(self, name: str) -> float:
        if self.layer_decay == 1.0 or not name.startswith("encoder."):
            return 1.0
        return self.layer_decay ** layers_above(self.encoder, name.removeprefix("encoder."))

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
            None if collated.overlap is None else collated.overlap.to(precise),
            *self._seen(collated, precise, cache),
            turned=None if collated.turned is None else collated.turned.to(precise.device),
        )
        rows = [
            torch.cat([row[[item.start]], row[[1 + read for read in item.reads if read is not None]]])
            for item, row in zip(batch, mixed, strict=True)
        ]
        cached = [_cached(item, row, hits) for item, row in zip(batch, collated.place.tolist(), strict=True)]
        return States(torch.cat(rows), tuple(len(row) - 1 for row in rows), tuple(cached))

    def _seen(
        self, batch: ChunkBatch, precise: Tensor, cache: ChunkCache | None
    ) -> tuple[Tensor, Tensor] | tuple[()]:
        if self.picture_encoder is None or not batch.pictures:
            return ()
        embedded = self.picture_encoder.embed(batch.pictures, cache)
        return embedded.to(precise), batch.picture_place.to(precise.device)

    def prepare(self, rendered: Sequence[Any]) -> None:
        """Take the scale of the numbers of pictures from those of the training, where a parent has given none."""
        if self.picture_encoder is None or self.mixer.pictures is None or self.mixer.pictures.is_fitted:
            return
        pictures = _distinct_pictures(rendered)[:_SCALED_BY]
        if pictures:
            self.mixer.pictures.fit_scale(self.picture_encoder.embed(pictures))

    def embed(
        self, chunks: Sequence[tuple[int, ...]], *, cache: ChunkCache | None = None
    ) -> tuple[Tensor, set[int]]:
        """[chunks, hidden], and which of them came from the cache. Gradients reach the encoder only without one."""
        return embed_chunks(
            self.encoder, self.name, chunks, pooling=self.pooling, cache=cache, bfloat16=self.in_bfloat16
        )

    def step_embeddings(
        self, batch: Sequence[Chunks], *, cache: ChunkCache | None = None
    ) -> list[NDArray[np.float64]] | None:
        """The mean over the chunks of what the agent wrote at a step. An encoder that was trained has none."""
        if not self.frozen:
            return None
        own = [
            (place, chunk.agent_step, self.renderer.framed(chunk.ids))
            for place, item in enumerate(batch)
            for chunk in item.chunks
            if chunk.agent_step is not None and SOURCES[chunk.source] in _OWN and chunk.picture is None
        ]
        rows = {ids: row for row, ids in enumerate(dict.fromkeys(ids for *_, ids in own))}
        found = [np.zeros((len(item.reads), self.mixer.config.hidden)) for item in batch]
        if not rows:
            return found
        with torch.no_grad():
            embedded = self.embed([*rows], cache=cache)[0].cpu().double().numpy()
        counts = [np.zeros((len(item.reads), 1)) for item in batch]
        for place, step, ids in own:
            found[place][step] += embedded[rows[ids]]
            counts[place][step] += 1
        return [total / np.maximum(count, 1) for total, count in zip(found, counts, strict=True)]

    def encode_ahead(self, batch: Sequence[Chunks], cache: ChunkCache) -> Iterator[int]:
        """Every chunk, see `embed_ahead`."""
        if self.picture_encoder is not None:
            pictures = _distinct_pictures(batch)
            for start in range(0, len(pictures), _AHEAD):
                self.picture_encoder.embed(pictures[start : start + _AHEAD], cache)
                yield min(start + _AHEAD, len(pictures))
        chunks = {self.renderer.framed(chunk.ids) for item in batch for chunk in item.chunks}
        yield from embed_ahead(
            self.encoder, self.name, chunks, cache, pooling=self.pooling, bfloat16=self.in_bfloat16
        )

    def cost(self, batch: Sequence[Chunks]) -> int:
        """Frozen: chunks through the mixer. Else the tokens of distinct chunks."""
        if self.frozen:
            return sum(len(item.chunks) for item in batch)
        frame = self.renderer.frame
        return sum(
            chunk.size(frame)
            for chunk in {
                chunk.ids or chunk.picture: chunk for item in batch for chunk in item.chunks
            }.values()
        )


def _cached(chunks: Chunks, row: list[int], hits: set[int]) -> int:
    return sum(
        chunk.size(chunks.frame)
        for chunk, place in zip(chunks.chunks, row, strict=False)
        if place in hits and chunk.picture is None
    )


def _distinct_pictures(batch: Sequence[Chunks]) -> list[Picture]:
    """In the order of their digests."""
    found = {chunk.picture for item in batch for chunk in item.chunks if chunk.picture is not None}
    return sorted(found, key=lambda picture: picture.digest)
