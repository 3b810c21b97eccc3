"""The form `token-classifier`: read at the last token of each agent step, it gives the value of the step."""

from pathlib import Path

import torch
from transformers import AutoModelForTokenClassification
from transformers.models.auto.modeling_auto import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES

from workers.models.exporting import serving, snippets
from workers.models.exporting.model_folder import (
    classifier_config,
    classifier_tensors,
    load_back,
    save_tensors,
    save_tokenizer,
)
from workers.models.exporting.source import ExportOptions, ExportSource, ExportUsage, reward_head


def write(source: ExportSource, folder: Path, options: ExportOptions) -> ExportUsage:
    config = classifier_config(source, MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES, what="token classifier")
    save_tensors(classifier_tensors(source, config, reward_head(source)), folder)
    config.save_pretrained(folder)
    tokenizer = save_tokenizer(source, folder, pad=config.pad_token_id)
    probe = source.probe
    model = load_back(folder, AutoModelForTokenClassification)
    with torch.no_grad():
        logits = model(input_ids=probe.input_ids).logits
    return ExportUsage(
        sections=[
            ("How to score", snippets.token_classifier(source, tokenizer)),
            ("What differs from the model in Touchstone", snippets.left_out(source)),
            ("Serving", serving.token_classifier(source, config.architectures[0])),
        ],
        library="transformers",
        pipeline="token-classification",
        tags=["reward-model", "process-reward-model"],
        checked=probe.require_same(logits, f"transformers' {type(model).__name__}"),
    )
