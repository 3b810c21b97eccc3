"""A decoder with its LM head, asked only for the log-probabilities of given tokens."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from workers.models.backbones.decoder import Decoder, text_config
from workers.text import AgentSpans, ConversationRenderer

_AT_ONCE = 256  # tokens whose distributions over the vocabulary are in memory together


class LanguageDecoder(Decoder):
    """weight: [vocabulary, width] of the LM head; bias: [vocabulary], or None."""

    kind = "language-decoder"

    def __init__(
        self, base: PreTrainedModel, renderer: ConversationRenderer, weight: Tensor, bias: Tensor | None
    ) -> None:
        super().__init__(base, renderer)
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)

    def log_probs(self, batch: Sequence[AgentSpans]) -> Iterator[Tensor]:
        """By item, [tokens the agent wrote]: the log-probability of each after those before it."""
        found = self._packed(batch, range(len(batch)))
        for place, item in enumerate(batch):
            targets = torch.tensor([item.ids[at + 1] for at in item.places], device=self.device)
            parts = zip(found[place].split(_AT_ONCE), targets.split(_AT_ONCE), strict=True)
            yield torch.cat([self._log_probs(states, target) for states, target in parts])

    def _log_probs(self, states: Tensor, targets: Tensor) -> Tensor:
        logits = nn.functional.linear(states.to(self.weight.dtype), self.weight, self.bias).float()
        logits = scaled_logits(logits, text_config(self.base.config))
        return logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def scaled_logits(logits: Tensor, config: PreTrainedConfig) -> Tensor:
    """What some architectures do behind their LM head: Cohere and Granite scale, Gemma 2 caps."""
    if scale := getattr(config, "logit_scale", None):
        logits = logits * scale
    if scaling := getattr(config, "logits_scaling", None):
        logits = logits / scaling
    if cap := getattr(config, "final_logit_softcapping", None):
        logits = cap * torch.tanh(logits / cap)
    return logits
