"""The form `transformers`: a sequence classifier that gives the reward, or a language model that writes a verdict."""

from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

from workers.models.exporting import checkpoint, generative, policy_and_reference, serving, snippets
from workers.models.exporting.model_folder import (
    classifier_config,
    classifier_tensors,
    load_back,
    save_tensors,
    save_tokenizer,
)
from workers.models.exporting.source import ExportOptions, ExportSource, ExportUsage, reward_head


def write(source: ExportSource, folder: Path, options: ExportOptions) -> ExportUsage:
    if source.kind == generative.KIND:
        return generative.write(source, folder)
    if source.kind == policy_and_reference.KIND:
        return policy_and_reference.write(source, folder)
    if source.kind in checkpoint.KINDS:
        return checkpoint.write(source, folder)
    config = classifier_config(
        source, MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, what="sequence classifier"
    )
    save_tensors(classifier_tensors(source, config, reward_head(source)), folder)
    config.save_pretrained(folder)
    tokenizer = save_tokenizer(source, folder, pad=config.pad_token_id)
    checked = _check(source, folder)
    architecture = config.architectures[0]
    return ExportUsage(
        sections=[
            ("How to score", snippets.sequence_classifier(source, tokenizer)),
            ("What differs from the model in Touchstone", snippets.left_out(source)),
            ("Serving", serving.sequence_classifier(source, architecture)),
        ],
        library="transformers",
        tags=["reward-model", "trl"],
        checked=checked,
    )


def _check(source: ExportSource, folder: Path) -> str:
    probe = source.probe
    model = load_back(folder, AutoModelForSequenceClassification)
    with torch.no_grad():
        logits = model(input_ids=probe.input_ids).logits
    return probe.require_same(logits, f"transformers' {type(model).__name__}")
