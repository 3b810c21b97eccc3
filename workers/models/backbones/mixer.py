"""From chunk embeddings to states: a small causal transformer over the chunks."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.text import GROUNDING, SOURCES

SIMILARITIES = 3
# Shares, cosines and logarithms differ by about a tenth from chunk to chunk; embeddings, once normalised, by one. What
# is so much smaller is hardly learnt from: a length that decides everything was missed.
GROUND_SCALE = 8.0


@dataclass(frozen=True, slots=True)
class MixerConfig:
    """ground_scale: what the grounding numbers are multiplied by; artifacts from before it was said have 1."""

    hidden: int  # of the encoder
    width: int = 128
    layers: int = 1
    attention_heads: int = 4
    grounding: bool = True
    dropout: float = 0.0
    ground_scale: float = 1.0


class Mixer(nn.Module):
    """states[b, t]: after chunk t, which has seen chunks 0..t only.

    A learnt start stands before the first chunk, so that there is a state before anything was said.
    """

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        self.config = config
        self.normalise = nn.LayerNorm(config.hidden)
        self.project = nn.Linear(config.hidden, config.width)
        self.source = nn.Embedding(len(SOURCES), config.width)
        self.ground = nn.Linear(len(GROUNDING) + SIMILARITIES, config.width) if config.grounding else None
        self.start = nn.Parameter(torch.zeros(config.width))
        self.position_scale = nn.Parameter(torch.tensor(0.1))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))

    def forward(self, embeddings: Tensor, sources: Tensor, grounding: Tensor, mask: Tensor) -> Tensor:
        """embeddings [b, t, hidden], sources [b, t] long, grounding [b, t, numbers], mask [b, t] bool (True: a chunk).

        Returns [b, 1 + t, width]; place 0 is the start.
        """
        x = self.project(self.dropout(self.normalise(embeddings))) + self.source(sources)
        if self.ground is not None:
            similar = similarities(embeddings, sources, mask)
            x = x + self.ground(self.config.ground_scale * torch.cat([grounding, similar], -1))
        x = torch.cat([self.start.expand(len(x), 1, -1), x], 1)
        x = x + self.position_scale * positions(x.shape[1], self.config.width).to(x)
        for block in self.blocks:
            x = block(x)  # causal, and padding is on the right: a real chunk never sees any
        return x


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
