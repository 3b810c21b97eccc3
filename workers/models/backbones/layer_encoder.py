"""A frozen encoder that is read at one of its layers instead of after the last one."""

from typing import Any

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

_DEPTH = 2 / 3  # of the layers: of MiniLM's six, the best one on public data (docs/results.md)


class LayerEncoder(nn.Module):
    """layer: how many layers of transformers' encoder a text goes through before it is read."""

    def __init__(self, encoder: nn.Module, layer: int) -> None:
        super().__init__()
        self.encoder, self.layer = encoder, layer
        self.config = encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> BaseModelOutput:
        found: Any = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True
        )
        return BaseModelOutput(last_hidden_state=found.hidden_states[self.layer])


def middle_layer(encoder: nn.Module) -> int:
    layers: int = encoder.config.num_hidden_layers  # type: ignore[union-attr,assignment]
    return max(1, round(_DEPTH * layers))
