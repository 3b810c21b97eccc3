"""A decoder with its LM head, asked only for the log-probabilities of given tokens."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from workers.errors import RewardError
from workers.models.backbones.decoder import Decoder, load_pretrained, read_config, text_config
from workers.text import AgentSpans, ConversationRenderer

_AT_ONCE = 256  # tokens whose distributions over the vocabulary are in memory together


class LanguageDecoder(Decoder):
    """weight: [vocabulary, width] of the LM head; bias: [vocabulary], or None. A parameter stays the one it is: the
    embeddings may be the LM head too."""

    kind = "language-decoder"

    def __init__(
        self, base: PreTrainedModel, renderer: ConversationRenderer, weight: Tensor, bias: Tensor | None
    ) -> None:
        super().__init__(base, renderer)
        self.weight = _parameter(weight)
        self.bias = None if bias is None else _parameter(bias)

    def adapt(self, rank: int, alpha: float) -> None:
        """The LM head gets no adapter and is frozen, as TRL and PEFT leave it. It is kept in float32: the rounding of
        logits in bfloat16 is as large as a log-ratio."""
        super().adapt(rank, alpha)
        self.weight = nn.Parameter(self.weight.detach().float(), requires_grad=False)
        if self.bias is not None:
            self.bias = nn.Parameter(self.bias.detach().float(), requires_grad=False)

    def log_probs(self, batch: Sequence[AgentSpans]) -> Iterator[Tensor]:
        """By item, [tokens the agent wrote]: the log-probability of each after those before it."""
        found = self._packed(batch, range(len(batch)))
        for place, item in enumerate(batch):
            targets = torch.tensor([item.ids[at + 1] for at in item.places], device=self.device)
            parts = zip(found[place].split(_AT_ONCE), targets.split(_AT_ONCE), strict=True)
            yield torch.cat([self._checkpointed_log_probs(states, target) for states, target in parts])

    def _checkpointed_log_probs(self, states: Tensor, targets: Tensor) -> Tensor:
        """In training the distributions are computed twice and not kept: they outweigh all other activations."""
        if not torch.is_grad_enabled():
            return self._log_probs(states, targets)
        found: Tensor = checkpoint(self._log_probs, states, targets, use_reentrant=False)
        return found

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


def load_language_model(folder: Path, *, device: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """With its LM head, from local safetensors only; no remote code, no pickles.

    Raises RewardError where the folder holds no causal language model, or not all of its tensors.
    """
    architecture = next(iter(read_config(folder).architectures or ()), "")
    if architecture not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        raise _no_language_model(folder, f"its config.json names {architecture or 'no architecture'}")
    causal, missing = load_pretrained(AutoModelForCausalLM, folder, device=device, dtype=dtype)
    if missing:
        raise _no_language_model(folder, f"{', '.join(missing[:3])} missing in its files")
    if getattr(causal, "lm_head", None) is not causal.get_output_embeddings():
        raise _no_language_model(folder, f"{architecture} has no LM head of the name lm_head")
    return causal.to(device)


def policy_decoder(causal: Any, renderer: ConversationRenderer) -> LanguageDecoder:
    """causal: of `load_language_model`; its parameters are the decoder's own."""
    return LanguageDecoder(causal.base_model, renderer, causal.lm_head.weight, causal.lm_head.bias)


def _no_language_model(folder: Path, why: str) -> RewardError:
    return RewardError(
        f"{folder.name} is no causal language model: {why}. An implicit process reward is read off the LM head; name "
        "the folder of a language model as `decoder`.",
        pointer="/decoder",
    )


def _parameter(tensor: Tensor) -> nn.Parameter:
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor)
