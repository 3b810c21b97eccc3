"""A policy and its reference model as one artifact: each a causal language model, with one tokenizer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import empty_base, text_config
from workers.models.backbones.implicit_process import ImplicitProcess
from workers.models.backbones.language_decoder import LanguageDecoder
from workers.models.files import WEIGHTS
from workers.models.heads import Heads, HeadsConfig
from workers.text import AgentSpanRenderer

KIND = "implicit-process"
REFERENCE_WEIGHTS, REFERENCE_CONFIG = "reference.safetensors", "reference_config.json"
_LM_HEAD = "lm_head."


@dataclass(frozen=True, slots=True)
class StateHeadsConfig(HeadsConfig):
    """Of a backbone whose states are the rewards."""

    def new_heads(self) -> "StateHeads":
        return StateHeads(self)


class StateHeads(Heads):
    """Nothing is read off the states."""

    def __init__(self, config: StateHeadsConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.label = None
        self.criterion = None


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[ImplicitProcess, HeadsConfig, dict[str, Any]]:
    renderer = span_renderer(folder, manifest["text"]["max_tokens"])
    policy = AutoConfig.from_pretrained(folder, local_files_only=True)
    reference = AutoConfig.from_pretrained(folder / REFERENCE_CONFIG, local_files_only=True)
    backbone = ImplicitProcess(
        language_decoder(folder / WEIGHTS, policy, renderer, placement),
        language_decoder(folder / REFERENCE_WEIGHTS, reference, renderer, placement),
        beta=manifest["backbone"]["beta"],
    )
    return backbone, StateHeadsConfig(width=1, ensemble=1, inner=0), {}


def language_decoder(
    path: Path, config: PreTrainedConfig, renderer: AgentSpanRenderer, placement: Placement
) -> LanguageDecoder:
    """Raises RuntimeError where the tensors are not those of the configuration."""
    base = empty_base(config, placement).eval()
    prefix = f"{base.base_model_prefix}."
    with safe_open(path, framework="pt") as file:
        names = [*file.keys()]
        own = {name.removeprefix(prefix): file.get_tensor(name) for name in names if name.startswith(prefix)}
        base.load_state_dict(own, strict=True)
        head = {
            name.removeprefix(_LM_HEAD): file.get_tensor(name).float()
            for name in names
            if name.startswith(_LM_HEAD)
        }
    embeddings = base.get_input_embeddings()
    weight = head.get("weight", embeddings.weight.detach())
    return LanguageDecoder(base, renderer, weight.to(placement.device), head.get("bias")).eval()


def span_renderer(folder: Path, max_tokens: int) -> AgentSpanRenderer:
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    config = text_config(AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False))
    longest = getattr(config, "max_position_embeddings", None)
    if longest is not None and max_tokens > longest:
        raise RewardError(
            f"max_tokens = {max_tokens}, but this model reads at most {longest}.", pointer="/max_tokens"
        )
    return AgentSpanRenderer(tokenizer, max_tokens)
