"""The files of an imported classifier: those that transformers loads it from, and its head as one of ours."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedConfig

from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import text_config
from workers.models.backbones.sequence_classifier import SequenceClassifier
from workers.models.files import WEIGHTS, load_heads
from workers.models.heads import HeadsConfig
from workers.models.transformers_loading import transformers_loading
from workers.schema.encoder_folder import position_limit
from workers.text import ClassifierRenderer

KIND = "classifier"
STEP_RULE = "of the conversation up to each agent step, as an input for each; V_0 of what is before the first"


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[SequenceClassifier, HeadsConfig, dict[str, Any]]:
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with transformers_loading():
        model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False).float().eval()
    model.load_state_dict(load_file(folder / WEIGHTS), strict=True)
    heads, head_weights = load_heads(folder, manifest["heads"])
    return SequenceClassifier(model, reads(folder, manifest), config.num_labels), heads, head_weights


def reads(folder: Path, manifest: dict[str, Any]) -> ClassifierRenderer:
    text = manifest["text"]
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # Models that were imported before their limit was checked: beyond their table there is nothing to read.
    max_tokens = min(text["max_tokens"], table_length(text_config(config)) or text["max_tokens"])
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return ClassifierRenderer(tokenizer, max_tokens, text["form"])


def table_length(config: PreTrainedConfig) -> int | None:
    """The most tokens that a model has positions for; None where they are relative, or computed (rotary)."""
    is_relative = getattr(config, "position_biased_input", True) is False  # DeBERTa
    if is_relative or getattr(config, "rope_parameters", None) or getattr(config, "rope_theta", None):
        return None
    longest = getattr(config, "max_position_embeddings", None)  # whatever config.json calls it
    return position_limit(config.to_dict() | {"max_position_embeddings": longest})
