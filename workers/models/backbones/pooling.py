"""From the states of a text's tokens to its embedding: pooling and more layers, as sentence-transformers has them."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from workers.errors import RewardError
from workers.schema.encoder_folder import POOLING_WEIGHTS, EmbeddingLayer, EncoderReading, TokenPooling

_PLAIN = EncoderReading()


class EmbeddingPooling(nn.Module):
    """What `SentenceTransformer.encode` makes of the encoder's states. Only its layers have weights.

    skipped: tokens at the beginning that are not pooled, those of a prompt.
    """

    def __init__(self, reading: EncoderReading = _PLAIN, *, skipped: int = 0) -> None:
        super().__init__()
        self.reading = reading
        self.skipped = skipped
        self.layers = nn.ModuleList(_module(layer) for layer in reading.layers)

    def size(self, hidden: int) -> int:
        """Of an embedding; hidden: of a state."""
        sizes = [layer.outputs for layer in self.reading.layers if layer.kind == "dense"]
        return sizes[-1] if sizes else hidden * len(self.reading.pooling)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states [texts, tokens, hidden] float32; mask [texts, tokens], 1 where there is a token, padded on the right.

        Returns [texts, size]; of unit length only where the last layer makes it so.
        """
        places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        pooled_mask = mask * (places > self.skipped) if self.skipped else mask
        weights = pooled_mask.to(torch.float32).unsqueeze(-1)
        found = [_pooled(mode, states, weights, places) for mode in self.reading.pooling]
        embedding = found[0] if len(found) == 1 else torch.cat(found, -1)
        for layer in self.layers:
            embedding = layer(embedding)
        return embedding


def load_pooling(folder: Path, reading: EncoderReading, *, skipped: int = 0) -> EmbeddingPooling:
    """From a folder of sentence-transformers, or of a model of ours. Raises RewardError where weights do not fit."""
    pooling = EmbeddingPooling(reading, skipped=0 if reading.in_pooling else skipped)
    if (folder / POOLING_WEIGHTS).is_file():
        _load(pooling, folder, POOLING_WEIGHTS)
        return pooling
    for layer, module in zip(reading.layers, pooling.layers, strict=True):
        if layer.kind != "normalize":
            _load(module, folder, layer.source)
    return pooling


def _load(module: nn.Module, folder: Path, name: str) -> None:
    try:
        module.load_state_dict(load_file(folder / name), strict=True)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise RewardError(
            f"{name or POOLING_WEIGHTS} of the encoder folder {folder.name} does not fit its layers ({error}); copy "
            "the whole folder again.",
            pointer="/encoder",
        ) from None


def _pooled(mode: TokenPooling, states: Tensor, weights: Tensor, places: Tensor) -> Tensor:
    """weights: [texts, tokens, 1], 1 or 0. places: [tokens], from 1."""
    if mode == "mean":
        return (states * weights).sum(1) / weights.sum(1)
    if mode == "mean_sqrt_len_tokens":
        return (states * weights).sum(1) / weights.sum(1).sqrt()
    if mode == "weightedmean":
        by_place = weights * places.view(1, -1, 1)
        return (states * by_place).sum(1) / by_place.sum(1)
    if mode == "max":
        return states.masked_fill(weights == 0, float("-inf")).amax(1)
    is_pooled = weights.squeeze(-1)
    place = is_pooled.argmax(1) if mode == "cls" else (is_pooled * places).argmax(1)
    return states[torch.arange(len(states), device=states.device), place]


class _Dense(nn.Module):
    """activation(W x + b), with x added where the layer is residual. Named as in sentence-transformers' files."""

    def __init__(self, layer: EmbeddingLayer) -> None:
        super().__init__()
        self.linear = nn.Linear(layer.inputs, layer.outputs, bias=layer.bias)
        self.activation = getattr(nn, layer.activation)()
        self.is_residual = layer.residual
        if layer.residual and layer.inputs != layer.outputs:
            self.residual = nn.Linear(layer.inputs, layer.outputs, bias=False)

    def forward(self, embedding: Tensor) -> Tensor:
        found: Tensor = self.activation(self.linear(embedding))
        if not self.is_residual:
            return found
        return found + (self.residual(embedding) if hasattr(self, "residual") else embedding)


class _LayerNorm(nn.Module):
    def __init__(self, layer: EmbeddingLayer) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(layer.inputs)

    def forward(self, embedding: Tensor) -> Tensor:
        normalised: Tensor = self.norm(embedding)
        return normalised


class _UnitLength(nn.Module):
    def forward(self, embedding: Tensor) -> Tensor:
        return nn.functional.normalize(embedding, dim=-1)


def _module(layer: EmbeddingLayer) -> nn.Module:
    makers: dict[str, Any] = {"dense": _Dense, "layer_norm": _LayerNorm}
    return makers[layer.kind](layer) if layer.kind in makers else _UnitLength()
