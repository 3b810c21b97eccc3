"""The `classifier` backbone: a sequence classifier of transformers with its own forward pass, less its last map.

For models that see all of a text, as BERT does, and for decoders that no tree can be packed for. What its last linear
map reads is the state; the map itself is the head. Every value is read of a text of its own.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workers.models.backbones.base import Backbone
from workers.models.backbones.last_map import detach_last_map
from workers.models.states import States, join
from workers.text.classifier_inputs import ClassifierInput, ClassifierInputs, ClassifierRenderer

_BATCH_TOKENS = 4096  # padded, in one forward pass on a CPU
_GPU_TOKENS = 65_536


class SequenceClassifier(Backbone):
    """model: of a class of `AutoModelForSequenceClassification`. Its last linear map is taken off."""

    kind = "classifier"
    renderer: ClassifierRenderer

    def __init__(self, model: nn.Module, renderer: ClassifierRenderer, labels: int) -> None:
        super().__init__()
        self.last_map = detach_last_map(model, labels)
        self.model = model
        self.renderer = renderer
        self.width = self.last_map.width
        pad = model.config.get_text_config().pad_token_id  # type: ignore[union-attr,operator]
        self._pad: int | None = None if pad is None else int(pad)
        self.has_types = "token_type_ids" in renderer.tokenizer.model_input_names

    def states(self, batch: Sequence[ClassifierInputs], *, cache: Any = None) -> States:
        inputs = dict.fromkeys(each for item in batch for each in item.inputs)
        found: dict[ClassifierInput, Tensor] = {}
        for some in self._batches([*inputs]):
            found |= zip(some, self._pooled(some), strict=True)
        parts = []
        for item in batch:
            rows = torch.stack([found[each] for each in item.inputs])
            first = rows.new_zeros(self.width) if item.start is None else rows[item.start]
            parts.append((first, rows[[read for read in item.reads if read is not None]]))
        return join(parts, [0] * len(batch))

    def cost(self, batch: Sequence[ClassifierInputs]) -> int:
        return sum(len(each.ids) for each in dict.fromkeys(each for item in batch for each in item.inputs))

    def is_encoder(self, name: str) -> bool:
        return True

    def _batches(self, inputs: list[ClassifierInput]) -> list[list[ClassifierInput]]:
        """Of about the same length; one by one where the model knows no padding."""
        if self._pad is None:
            return [[each] for each in inputs]
        most = _BATCH_TOKENS if self.device.type == "cpu" else _GPU_TOKENS
        batches: list[list[ClassifierInput]] = []
        for each in sorted(inputs, key=lambda each: -len(each.ids)):
            if not batches or (len(batches[-1]) + 1) * len(batches[-1][0].ids) > most:
                batches.append([])
            batches[-1].append(each)
        return batches

    def _pooled(self, inputs: Sequence[ClassifierInput]) -> Tensor:
        """[inputs, width]"""
        longest = max(len(each.ids) for each in inputs)
        ids = torch.full((len(inputs), longest), self._pad or 0)
        types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, each in enumerate(inputs):
            length = len(each.ids)
            ids[row, :length] = torch.tensor(each.ids)
            types[row, :length] = torch.tensor(each.types)
            mask[row, :length] = 1
        more = {"token_type_ids": types.to(self.device)} if self.has_types else {}
        autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.in_bfloat16)
        with autocast:
            pooled: Tensor = self.model(
                input_ids=ids.to(self.device), attention_mask=mask.to(self.device), **more
            ).logits
        return pooled.float()
