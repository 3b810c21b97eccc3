"""Sequence classifiers on causal language models, as artifacts of the kind `decoder`."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.conversations import checkpoint_renderer, template_notes, template_words
from workers.importing.labels import choose_output, criteria_of, heads_part, save_output_heads
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors, read_tensor
from workers.models.backbones.decoder import read_config, read_windows, text_config
from workers.models.files import WEIGHTS
from workers.models.kinds.decoder import STEP_RULE
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import ReadingRule

_HEAD = "score.weight"


def fits(checkpoint: Checkpoint, options: ImportOptions) -> bool:
    """Whether the model is causal, of layers that a tree of conversations can be packed for."""
    if (
        checkpoint.config["model_type"] not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        or _HEAD not in checkpoint.tensors
    ):
        return False
    if options.text_form not in ("", "template"):
        return False
    try:
        read_windows(text_config(read_config(checkpoint.folder)))
    except RewardError:
        return False
    return True


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised:
    config = read_config(checkpoint.folder)
    checkpoint.require_tensors(classifier_tensors(config))
    output = choose_output(checkpoint.labels, options)
    max_tokens = longest_input(checkpoint, options.max_tokens)
    rule = reading_rule(config)
    renderer = checkpoint_renderer(checkpoint, max_tokens, rule)
    padding = [renderer.tokenizer.convert_ids_to_tokens(id_) for id_ in rule.skipped]
    return Recognised(
        type="sequence-classifier",
        architecture=checkpoint.architecture,
        because=f"config.json names {checkpoint.architecture}, and the weights are all of its tensors, {_HEAD} too",
        labels=output.names,
        reward=output.words,
        template=template_words(checkpoint),
        reads="at the last token of each agent step"
        + (f" that is not {padding[0]}, the padding" if padding else ""),
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=tuple(template_notes(checkpoint, renderer)),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    config = read_config(checkpoint.folder)
    output = choose_output(checkpoint.labels, options)
    names = [*classifier_tensors(config)]
    copy_tensors([NamedTensor(name, checkpoint.tensors[name]) for name in names], folder / WEIGHTS)
    copy_tokenizer(checkpoint, folder)
    write_config(checkpoint.config, folder)
    head = checkpoint.tensors[_HEAD]
    if len(output.names) == 1:
        heads = heads_part(output, head.shape[1])
    else:
        heads = save_output_heads(output, read_tensor(head), folder)
    return {
        "backbone": {"kind": "decoder", "architecture": config.model_type},
        "heads": heads,
        "text": {"max_tokens": found.max_tokens, "speakers": False, "whole": reading_rule(config).as_json()},
        "step_rule": STEP_RULE,
        "criteria": criteria_of(output),
    }


def classifier_tensors(config: PreTrainedConfig) -> dict[str, tuple[int, ...]]:
    """By name, the shapes of the classifier's tensors."""
    with transformers_loading(), torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def reading_rule(config: PreTrainedConfig) -> ReadingRule:
    """At the last token that is no padding, as transformers' classifiers are read."""
    pad = getattr(text_config(config), "pad_token_id", None)
    return ReadingRule(skipped=() if pad is None else (int(pad),))
