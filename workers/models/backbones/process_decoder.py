"""The backbone of imported process reward models: a decoder that is read where its steps end."""

from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from workers.models.backbones.decoder import Decoder
from workers.models.heads import Heads
from workers.models.states import Aggregation, RewardFrom
from workers.text import StepRenderer


class ProcessDecoder(Decoder):
    """process, text: those parts of the manifest, see `workers.models.kinds.process_decoder`."""

    kind = "process-decoder"
    renderer: StepRenderer

    def __init__(
        self, base: PreTrainedModel, renderer: StepRenderer, *, process: dict[str, Any], text: dict[str, Any]
    ) -> None:
        super().__init__(base, renderer)
        self.process, self.text = process, text
        self.head_weights: dict[str, Tensor] = {}  # that a training starts with

    def set_heads(self, heads: Heads) -> None:
        heads.load_state_dict(self.head_weights, strict=True)

    def scoring(self, aggregation: Aggregation, reward_from: RewardFrom) -> tuple[Aggregation, RewardFrom]:
        """The imported model's own, whatever a recipe says: its steps are what it was trained to say of them."""
        own: Aggregation = self.process["aggregation"]
        return own, "probability" if self.process["step_value"] == "probability" else "labels"
