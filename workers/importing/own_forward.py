"""Sequence classifiers with a forward pass that only transformers has, as artifacts of the kind `classifier`."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.decoder_classifier import classifier_tensors
from workers.importing.labels import choose_output, criteria_of, save_output_heads
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors, read_tensor
from workers.models.backbones.decoder import read_config
from workers.models.backbones.last_map import LastMap, find_last_map
from workers.models.files import WEIGHTS
from workers.models.kinds.classifier import STEP_RULE
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import ClassifierRenderer, TextForm
from workers.text.classifier_inputs import TEXT_FORMS

_WORDS: dict[TextForm, str] = {
    "template": "its own chat template: the ids of apply_chat_template",
    "pair": "question and answer as a pair of texts, tokenizer(question, answer): the question is what stands before "
    "the agent step, and several messages have the names of their roles",
    "text": "`User: ...` and `Assistant: ...`, as tokenizer(text)",
}


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised:
    checkpoint.require_tokenizer()
    config = read_config(checkpoint.folder)
    checkpoint.require_tensors(classifier_tensors(config))
    last = _last_map(checkpoint)
    output = choose_output(checkpoint.labels, options)
    form = _form(checkpoint, options)
    max_tokens = longest_input(checkpoint, options.max_tokens)
    tokenizer = AutoTokenizer.from_pretrained(
        checkpoint.folder, local_files_only=True, trust_remote_code=False
    )
    ClassifierRenderer(tokenizer, max_tokens, form)
    return Recognised(
        type="sequence-classifier",
        architecture=checkpoint.architecture,
        because=f"config.json names {checkpoint.architecture}, and the weights are all of its tensors, "
        f"{last.name}.weight too",
        labels=output.names,
        reward=output.words,
        template=_WORDS[form],
        reads="on a text for each agent step, which ends with it: a conversation of many steps costs one pass for each",
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=("Messages after the last one of the agent are not read.", *_notes(form)),
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
    last = _last_map(checkpoint)
    weight = read_tensor(checkpoint.tensors[f"{last.name}.weight"])
    bias = read_tensor(checkpoint.tensors[f"{last.name}.bias"]) if last.bias else None
    return {
        "backbone": {"kind": "classifier", "architecture": config.model_type},
        "heads": save_output_heads(output, weight, folder, bias=bias),
        "text": {"max_tokens": found.max_tokens, "form": _form(checkpoint, options)},
        "step_rule": STEP_RULE,
        "criteria": criteria_of(output),
    }


def _form(checkpoint: Checkpoint, options: ImportOptions) -> TextForm:
    """As it was said; else its chat template, and question and answer for a model that has none."""
    if not options.text_form:
        return "template" if checkpoint.chat_template else "pair"
    found = next((form for form in TEXT_FORMS if form == options.text_form), None)
    if found is None:
        raise RewardError(
            f"text_form = {options.text_form!r} is none of {', '.join(TEXT_FORMS)}.",
            pointer="/options/text_form",
        )
    if found == "template" and not checkpoint.chat_template:
        raise RewardError(
            f"{checkpoint.folder.name} has no chat template; use pair or text.", pointer="/options/text_form"
        )
    return found


def _notes(form: TextForm) -> tuple[str, ...]:
    if form == "template":
        return ()
    return (
        "System messages, tool calls, tool results and reasoning are shown as text: the model has no template.",
        "The model's card says what it was trained on; --text-form chooses another.",
    )


def _last_map(checkpoint: Checkpoint) -> LastMap:
    with transformers_loading(), torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(read_config(checkpoint.folder))
    return find_last_map(model, len(checkpoint.labels))[0]
