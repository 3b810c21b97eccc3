"""Defaults of a recipe that follow from the size of its encoder, and the memory that it takes. Without torch.

Bytes of training P parameters, L layers of width h with a heads, T tokens in one forward pass, chunks of s tokens:

- frozen: 4 P, and what one layer computes for GROUP_TOKENS tokens.
- unfrozen: 16 P (weights, gradient and AdamW's two moments, float32), and what the layers keep for the backward pass:
  `layer_bytes` for each token, of all L layers, or with gradient_checkpointing of one and 4 h for the input of each;
  WORKING_LAYERS more for the layer that is computed. The coefficients are those of tensors that transformers' classes
  were seen to keep (tests/workers/models/test_encoder_memory.py); the form is that of Korthikanti et al. 2022, eq. 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.schema.decoder_estimate import RESERVE, WORKING_LAYERS
from workers.schema.encoder_folder import EncoderDescription, read_encoder_folder
from workers.schema.recipe import Recipe

GROUP_TOKENS = 8192  # padded tokens in one forward pass of a frozen encoder
_CHUNK_TOKENS = 128
_BASE, _LARGE = 50_000_000, 200_000_000  # parameters from which an encoder is of that size
# MiniLM's own are those of `Recipe`. Rates as in fine-tuning of BERT (Devlin et al. 2019, A.3) and DeBERTa v3 large
# (He et al. 2021, table 9); the decay by layer as in ELECTRA (Clark et al. 2020, appendix B), where 0.9 is the lesser.
_TRAINED: dict[int, dict[str, Any]] = {
    _BASE: {"encoder_learning_rate": 2e-5, "encoder_layer_decay": 0.9},
    _LARGE: {"encoder_learning_rate": 1e-5, "encoder_layer_decay": 0.9, "gradient_checkpointing": True},
}


def with_encoder_defaults(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values of a recipe, with defaults that suit the encoder of the folder. Raises RewardError for one that is not
    read."""
    return encoder_defaults(read_encoder_folder(folder), values) | dict(values)


def encoder_defaults(encoder: EncoderDescription, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that differ from `Recipe`'s. values: of the recipe, as far as they are given."""
    backbone, found = values.get("backbone", "step-encoder"), dict[str, Any]()
    if backbone not in ("step-encoder", "hybrid"):
        return found
    if encoder.longest is not None:
        room = (
            encoder.longest
            - 2
            - len(encoder.reading.with_prompt(str(values.get("encoder_prompt", ""))).prompt)
        )
        if room < _CHUNK_TOKENS:
            found["chunk_tokens"] = max(8, room)
    trains = values.get("unfrozen") is True or "unfrozen" in (values.get("search") or ())
    if backbone == "step-encoder" and trains:
        for least, defaults in _TRAINED.items():
            found |= defaults if encoder.parameters >= least else {}
    return found


@dataclass(frozen=True, slots=True)
class EncoderEstimate:
    """memory: bytes of one process, with RESERVE. trains: whether the encoder is trained."""

    memory: float
    parameters: int
    trains: bool


def estimate_encoder(encoder: EncoderDescription, recipe: Recipe) -> EncoderEstimate:
    size = 2 if recipe.precision == "bfloat16" else 4
    layer = layer_bytes(encoder, recipe.chunk_tokens, size)
    if not recipe.unfrozen:
        used = 4.0 * encoder.parameters + GROUP_TOKENS * layer
        return EncoderEstimate(RESERVE[0] * used + RESERVE[1], encoder.parameters, trains=False)
    kept = float(layer * encoder.layers)
    if recipe.gradient_checkpointing:
        kept = layer + 4.0 * encoder.hidden * encoder.layers
    copies = 2.0 * encoder.parameters if size == 2 else 0.0  # that autocast keeps
    used = 16.0 * encoder.parameters + copies + recipe.micro_tokens * (kept + WORKING_LAYERS * layer)
    return EncoderEstimate(RESERVE[0] * used + RESERVE[1], encoder.parameters, trains=True)


def layer_bytes(encoder: EncoderDescription, chunk_tokens: int, size: int) -> int:
    """What a layer keeps of a token, at most: attention weights too, which fused kernels do not keep.

    size: bytes of a number, 2 or 4.
    """
    states = 40 if size == 4 else 27
    if encoder.model_type.startswith("deberta"):
        states += 60 if size == 4 else 14  # its attention to relative positions
    maps = 2 * size * max(4 * encoder.hidden, encoder.intermediate)
    return states * encoder.hidden + (maps if size == 4 else 2 * maps) + 12 * encoder.heads * chunk_tokens
