"""Sequence classifiers of transformers (`AutoModelForSequenceClassification`).

On a causal language model (Skywork, Llama, Qwen, Gemma, Mistral and others) one linear map reads the state of the last
token that is no padding: such a one becomes a `decoder`, whose artifact is the same classifier. Any other (BERT,
DeBERTa, ModernBERT) keeps the forward pass that transformers has for it: a `classifier`.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

from workers.importing import decoder_classifier, own_forward
from workers.importing.checkpoint import Checkpoint
from workers.importing.comparison import compare_rewards
from workers.importing.labels import choose_output
from workers.importing.recognised import Recognised
from workers.models.artifact import LocalScorer
from workers.models.backbones.sequence_classifier import SequenceClassifier
from workers.models.loaded import LoadedModel
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions

OPTIONS = ("label", "against", "labels", "text_form")


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    known = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(str(checkpoint.config.get("model_type")))
    if known is None or checkpoint.architecture != known:
        return None
    way = decoder_classifier if decoder_classifier.fits(checkpoint, options) else own_forward
    found: Recognised = way.recognise(checkpoint, options)
    return found


def convert(checkpoint: Checkpoint, found: Recognised, folder: Any, options: ImportOptions) -> dict[str, Any]:
    way = decoder_classifier if decoder_classifier.fits(checkpoint, options) else own_forward
    part: dict[str, Any] = way.convert(checkpoint, found, folder, options)
    return part | {
        "objective": "bradley_terry",
        "aggregation": "value",
        "reward_from": "scalar",
    }


def check(checkpoint: Checkpoint, scorer: LocalScorer, options: ImportOptions) -> dict[str, Any]:
    output = choose_output(checkpoint.labels, options)
    has_types = (
        isinstance(scorer, LoadedModel)
        and isinstance(scorer.model.backbone, SequenceClassifier)
        and scorer.model.backbone.has_types
    )

    def reward(model: Any, rendered: Any) -> Tensor:
        if hasattr(rendered, "inputs"):
            last = rendered.inputs[-1]
            types = {"token_type_ids": torch.tensor([last.types])} if has_types else {}
            logits: Tensor = model(input_ids=torch.tensor([last.ids]), **types).logits[0]
        else:
            logits = model(input_ids=torch.tensor([rendered.ids])).logits[0]
        return torch.stack([logits[place] * share for place, share in output.reward]).sum()

    return compare_rewards(checkpoint, scorer, lambda: load_classifier(checkpoint), reward)


def load_classifier(checkpoint: Checkpoint) -> Any:
    """As transformers loads it, in float32."""
    with transformers_loading():
        return AutoModelForSequenceClassification.from_pretrained(
            checkpoint.folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
        ).eval()
