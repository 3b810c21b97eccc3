"""The recipes of decoders that come along: for one GPU, and long trajectories of agents.

`decoder` is a name that the operator gives to a folder of the weights (TOUCHSTONE_MODEL_DIRS). What they need is
estimated by `workers.schema.decoder_estimate`, and listed in docs/gpu.md.
"""

from typing import Any

_AGENT_DECODER: dict[str, Any] = {
    "backbone": "decoder",
    "ties": "davidson",
    "strength_weights": [1.0, 2.0, 3.0],
    "max_tokens": 16_384,
    "gradient_checkpointing": True,
    "batch_pairs": 64,
    "batch_tokens": 2_097_152,  # 64 pairs of the longest trajectories, if they share nothing
    "micro_tokens": 32_768,  # one such pair
}
DECODER_RECIPES: dict[str, dict[str, Any]] = {
    "qwen3-0.6b": _AGENT_DECODER | {"decoder": "qwen3-0.6b", "lora_rank": 0},
    "qwen3-4b-lora": _AGENT_DECODER | {"decoder": "qwen3-4b", "lora_rank": 32, "lora_alpha": 64.0},
    "8b-qlora": _AGENT_DECODER
    | {"decoder": "qwen3-8b", "lora_rank": 32, "lora_alpha": 64.0, "base_weights": "nf4"},
}
