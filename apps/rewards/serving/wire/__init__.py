"""The protocols of trainers: one module each, with a table WIRES of its paths."""

from apps.rewards.serving.wire import llama_factory, moderations, nemo_gym, openrlhf, sglang, slime, tei, vllm
from apps.rewards.serving.wire.protocol import Wire

WIRES: tuple[Wire, ...] = tuple(
    wire
    for module in (openrlhf, vllm, sglang, tei, nemo_gym, slime, llama_factory, moderations)
    for wire in module.WIRES
)

__all__ = ["WIRES", "Wire"]
