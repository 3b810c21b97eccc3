"""The memory and the arithmetic of training a decoder, from its shape and the recipe. No torch, no weights.

Bytes, for P weights, of which A are trained, L layers of width h, T tokens in one forward pass (`micro_tokens`):

- weights: 4 A; of the frozen ones 2 (bfloat16), 4 (float32), or in 4 bits 0.52 for linear maps and 2 for the rest.
  The objective `implicit_process` adds the LM head in float32, and the reference model where all weights are trained.
- training: 12 A (gradient and AdamW's two moments, float32); where all weights are trained in bfloat16 autocast, 2 P
  for the copies that it keeps.
- activations: what a layer keeps for its backward pass, `layer_bytes` for each token; of all L layers, or with
  gradient_checkpointing of one, and 2 T h (float32: 4 T h) for the input of each; and WORKING_LAYERS times as much as
  one layer keeps, for gradients and temporary tensors of the layer that is computed: fitted to measured peaks.

Not in it: the CUDA context and fragmentation, for which `RESERVE` is added to the sum. Under adapters a layer keeps
less than this: it is an upper bound there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.schema.recipe import IMPLICIT, Recipe

NF4_BYTES = (
    0.516  # 4 bits, a constant of 8 bits for every 64 weights, and one of 32 bits for every 256 of those
)
RESERVE = (1.1, 1.0e9)  # a factor for fragmentation, and bytes of the CUDA context
WORKING_LAYERS = 3
ASSUMED_FLOPS = 4e14  # an H100's 989 TFLOP/s in bfloat16 at a share of 40 %: assumed, not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """As in config.json. head_norms: whether queries and keys are normalised by head, as in Qwen3."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    head_norms: bool = False

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "DecoderShape | None":
        """None where it is not a Llama-type architecture with a gated perceptron."""
        try:
            heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
            return cls(
                layers=int(config["num_hidden_layers"]),
                hidden=hidden,
                intermediate=int(config["intermediate_size"]),
                heads=heads,
                key_heads=int(config.get("num_key_value_heads") or heads),
                head_width=int(config.get("head_dim") or hidden // heads),
                vocabulary=int(config["vocab_size"]),
                head_norms=str(config.get("model_type", "")).startswith("qwen3"),
            )
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def _maps(self) -> list[tuple[int, int]]:
        """[in, out] of the linear maps of a layer."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        attention = [(self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden)]
        return [*attention, *[(self.hidden, self.intermediate)] * 2, (self.intermediate, self.hidden)]

    @property
    def linear_weights(self) -> int:
        return self.layers * sum(rows * columns for rows, columns in self._maps)

    @property
    def weights(self) -> int:
        """Without the LM head, which a reward model does not have; norms are left out."""
        return self.linear_weights + self.vocabulary * self.hidden

    def adapter_weights(self, rank: int) -> int:
        return self.layers * rank * sum(rows + columns for rows, columns in self._maps)

    def layer_bytes(self, size: int) -> int:
        """What a layer keeps of a token for its backward pass. size: of a number, 2 or 4 bytes; norms read float32.

        Both norms keep input, normalised input and output; attention its queries, keys, values, output and the input
        of the output map; the perceptron gate, activated gate, up and their product.
        """
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        kept = 4 * self.hidden + 3 * queries + 2 * keys + 4 * self.intermediate
        read = 2 * self.hidden
        if self.head_norms:
            kept, read = kept + queries + keys, read + queries + keys
        return size * kept + 4 * read


# Of the recipes that come along, for an estimate where the weights are not there yet.
KNOWN_SHAPES: dict[str, DecoderShape] = {
    name: DecoderShape(
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        key_heads=8,
        head_width=128,
        vocabulary=151_936,
        head_norms=True,
    )
    for name, layers, hidden, intermediate, heads in (
        ("qwen3-0.6b", 28, 1024, 3072, 16),
        ("qwen3-4b", 36, 2560, 9728, 32),
        ("qwen3-8b", 36, 4096, 12288, 32),
    )
}


@dataclass(frozen=True, slots=True)
class DecoderEstimate:
    """Bytes of one process, and floating-point operations for each token of training (shared ones once)."""

    weights: float
    training: float
    activations: float
    token_flops: float

    @property
    def memory(self) -> float:
        """Bytes, with RESERVE."""
        return RESERVE[0] * (self.weights + self.training + self.activations) + RESERVE[1]

    @property
    def million_seconds(self) -> float:
        """Seconds for a million tokens at ASSUMED_FLOPS."""
        return 1e6 * self.token_flops / ASSUMED_FLOPS


def estimate_decoder(shape: DecoderShape, recipe: Recipe, *, is_gpu: bool = True) -> DecoderEstimate:
    """is_gpu: computes in bfloat16, and keeps frozen weights in it, unless the recipe names float32."""
    size = 4 if recipe.precision == "float32" or (not is_gpu and recipe.precision == "auto") else 2
    trains_all = recipe.lora_rank == 0
    trained = shape.weights if trains_all else shape.adapter_weights(recipe.lora_rank)
    weights = 4.0 * shape.weights if trains_all else 4.0 * trained + _frozen_bytes(shape, recipe, size)
    training = 12.0 * trained + (2.0 * shape.weights if trains_all and size == 2 else 0.0)
    if recipe.objective == IMPLICIT:
        weights += _implicit_bytes(shape, trains_all=trains_all)
    tokens, layer = recipe.micro_tokens, shape.layer_bytes(size)
    kept = (
        layer + shape.layers * shape.hidden * size if recipe.gradient_checkpointing else shape.layers * layer
    )
    kept += WORKING_LAYERS * layer
    again = 1 if recipe.gradient_checkpointing else 0
    linear = (6 if trains_all else 4) + 2 * again
    # Two products of queries with keys and values, over half of the tokens before; twice that backwards.
    attention = 2.0 * shape.layers * shape.heads * shape.head_width * recipe.max_tokens * (3 + again)
    return DecoderEstimate(weights, training, float(tokens * kept), linear * shape.linear_weights + attention)


def _implicit_bytes(shape: DecoderShape, *, trains_all: bool) -> float:
    """An LM head in float32, and the reference model; with adapters that is the model without them."""
    head = 4.0 * shape.vocabulary * shape.hidden
    return head + (head + 4.0 * shape.weights if trains_all else 0.0)


def _frozen_bytes(shape: DecoderShape, recipe: Recipe, size: int) -> float:
    if recipe.base_weights == "nf4":
        return NF4_BYTES * shape.linear_weights + 2.0 * (shape.weights - shape.linear_weights)
    wanted = {"bfloat16": 2, "float32": 4}.get(recipe.base_weights, size)
    return float(wanted * shape.weights)
