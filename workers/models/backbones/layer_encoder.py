"""A frozen encoder that is read at one of its layers instead of after the last one."""

from copy import deepcopy
from typing import Any

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

_DEPTH = 2 / 3  # of the layers: of MiniLM's six, the best one on public data (docs/results.md)


class LayerEncoder(nn.Module):
    """layer: how many layers of transformers' encoder a text goes through before it is read.

    The layers above are not computed. The parameters are those of `encoder`, which stays as it is.
    """

    def __init__(self, encoder: nn.Module, layer: int) -> None:
        super().__init__()
        self.encoder, self.layer = _without_upper_layers(encoder, layer), layer
        self.config = encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> BaseModelOutput:
        found: Any = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True
        )
        return BaseModelOutput(last_hidden_state=found.hidden_states[self.layer])


def middle_layer(encoder: nn.Module) -> int:
    return max(1, round(_DEPTH * _layer_count(encoder)))


def layers_above(encoder: nn.Module, name: str) -> int:
    """How many of its layers are above a parameter's: all for embeddings, none for what comes after the last, and none
    where one layer is applied several times (ALBERT). name: in the encoder."""
    count = _layer_count(encoder)
    stacks = [
        path
        for path, part in encoder.named_modules()
        if isinstance(part, nn.ModuleList) and len(part) == count
    ]
    if not stacks or count == 1:
        return 0
    stack = f"{stacks[0]}."
    if name.startswith(stack):
        return count - 1 - int(name.removeprefix(stack).partition(".")[0])
    return count if "embed" in name or "tok_" in name else 0


def _without_upper_layers(encoder: nn.Module, layer: int) -> nn.Module:
    """A copy with the same parameters. Whole where the layers stand in no list, as where they share their weights."""
    lower = deepcopy(encoder, {id(parameter): parameter for parameter in encoder.parameters()})
    count = _layer_count(encoder)
    lists = (part for part in lower.modules() if isinstance(part, nn.ModuleList) and len(part) == count)
    if layer < count and (layers := next(lists, None)) is not None:
        del layers[layer:]
        # Else transformers replaces what the last layer gives with what the norm after all layers makes of it.
        lower.config.tie_last_hidden_states = False  # type: ignore[union-attr]
    return lower


def _layer_count(encoder: nn.Module) -> int:
    count: int = encoder.config.num_hidden_layers  # type: ignore[union-attr,assignment]
    return count
