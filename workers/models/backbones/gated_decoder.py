"""A decoder with attributes that a network weighs by the prompt: ArmoRM (Wang et al. 2024, arXiv 2406.12845).

A regression layer gives K attributes of an answer at its last token; a gating network gives a weight for each from the
state at the prompt's last token; the reward is their weighted sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from workers.models.backbones.decoder import Decoder
from workers.models.cache.session_cache import SessionSpace
from workers.models.states import States, join
from workers.text import ConversationRenderer, GatedTokens, Tokens


@dataclass(frozen=True, slots=True)
class GatingShape:
    """attributes: K. layers: linear maps of the gating network. inner: the width between them."""

    width: int
    attributes: int
    layers: int
    inner: int
    temperature: float


class GatingNetwork(nn.Module):
    """Names of its parameters are those of the published model."""

    def __init__(self, shape: GatingShape) -> None:
        super().__init__()
        self.temperature = shape.temperature
        self.logit_scale = nn.Parameter(torch.ones(1))
        widths = [shape.width, *[shape.inner] * (shape.layers - 1), shape.attributes]
        self.layers = nn.ModuleList(nn.Linear(into, out) for into, out in pairwise(widths))

    def forward(self, states: Tensor) -> Tensor:
        """[n, width] -> [n, K], positive; they sum to the scale."""
        *inner, last = self.layers
        for layer in inner:
            states = functional.relu(layer(states))
        weights: Tensor = torch.softmax(last(states) / self.temperature, -1) * self.logit_scale
        return weights


class GatedDecoder(Decoder):
    """Its states have one number more than the base's: the weighted sum of the attributes, which the head reads."""

    kind = "gated-decoder"

    def __init__(self, base: PreTrainedModel, renderer: ConversationRenderer, shape: GatingShape) -> None:
        super().__init__(base, renderer)
        self.width = shape.width + 1
        self.regression_layer = nn.Linear(shape.width, shape.attributes, bias=False)
        self.reward_transform_matrix = nn.Parameter(torch.eye(shape.attributes), requires_grad=False)
        self.gating = GatingNetwork(shape)

    def states(self, batch: Sequence[Tokens], *, cache: SessionSpace | None = None) -> States:
        """cache: of sessions."""
        gates = [item.gates if isinstance(item, GatedTokens) else tuple(item.places) for item in batch]
        places = [sorted({*item.places, *some}) for item, some in zip(batch, gates, strict=True)]
        found = super().states(
            [
                Tokens(item.ids, tuple(some[1:]), some[0], item.truncated, item.session)
                for item, some in zip(batch, places, strict=True)
            ],
            cache=cache,
        )
        parts = []
        for item, mine, some, (first, rest) in zip(batch, gates, places, found.split(), strict=True):
            row = {place: number for number, place in enumerate(some)}
            hidden = torch.cat([first.unsqueeze(0), rest])
            states = self._gated(
                hidden[[row[place] for place in item.places]], hidden[[row[gate] for gate in mine]]
            )
            start = states.new_zeros(self.width) if item.start is None else states[0]
            parts.append((start, states if item.start is None else states[1:]))
        return join(parts, found.cached)

    def _gated(self, states: Tensor, prompts: Tensor) -> Tensor:
        """[n, width], [n, width] -> [n, width + 1]"""
        attributes = self.regression_layer(states) @ self.reward_transform_matrix
        return torch.cat([states, (self.gating(prompts) * attributes).sum(-1, keepdim=True)], -1)
