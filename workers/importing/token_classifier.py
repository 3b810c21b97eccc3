"""Process reward models that are token classifiers of transformers (`AutoModelForTokenClassification`).

TRL's PRMTrainer writes them: plain text, the separator after each step, and one prediction at its last token.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
)

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.comparison import compare_rewards
from workers.importing.process_models import (
    AGGREGATIONS,
    STEP_OPTIONS,
    STEP_VALUES,
    ProcessForm,
    base_prefix,
    base_shapes,
    chosen,
    convert_process,
    decoder_config,
    recognised_process,
    require_form,
    step_token,
    tokenizer_of,
)
from workers.importing.recognised import Recognised
from workers.importing.step_labels import step_classes
from workers.importing.step_logits import step_reward
from workers.models.artifact import LocalScorer
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import StepFormat, Tokens

TYPE = "token-classifier"
OPTIONS = (*STEP_OPTIONS, "step_layout", "good_label")
_LAYOUTS = ("plain", "chat")


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if (form := _form(checkpoint, options)) is None:
        return None
    notes = []
    if not options.step_token and form.steps.layout == "plain":
        notes.append(
            "The checkpoint does not say what separates steps: it is taken to be a new line, as in TRL's PRMTrainer. "
            "Set step_token where the model's card says otherwise."
        )
    return recognised_process(
        checkpoint,
        form,
        options,
        type_=TYPE,
        because=f"config.json names {checkpoint.architecture}, and the weights are all of its tensors",
        labels=form.classes,
        notes=notes,
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    form = _form(checkpoint, options)
    assert form is not None
    return convert_process(checkpoint, form, found, folder)


def check(checkpoint: Checkpoint, scorer: LocalScorer, options: ImportOptions) -> dict[str, Any]:
    form = _form(checkpoint, options)
    assert form is not None
    kept = form

    def load() -> Any:
        with transformers_loading():
            return AutoModelForTokenClassification.from_pretrained(
                checkpoint.folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
            ).eval()

    def reward(model: Any, tokens: Tokens) -> torch.Tensor:
        logits = model(input_ids=torch.tensor([tokens.ids])).logits[0]
        return step_reward(logits[tokens.places], kept)

    return compare_rewards(checkpoint, scorer, load, reward)


def _form(checkpoint: Checkpoint, options: ImportOptions) -> ProcessForm | None:
    kind = str(checkpoint.config.get("model_type"))
    known = MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES.get(kind)
    if known is None or checkpoint.architecture != known:
        return None
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise RewardError(
            f"{checkpoint.architecture} reads in both directions, so what it says of a step would change with the next "
            "one; import a token classifier on a causal language model (Llama, Qwen, Mistral, Gemma types)."
        )
    config = decoder_config(checkpoint)
    prefix, head = base_prefix(config), _head_shapes(config)
    unused = require_form(checkpoint, prefix, base_shapes(config), head)
    (weight,) = (name for name in head if name.endswith(".weight"))
    bias = next((name for name in head if name.endswith(".bias")), "")
    layout = chosen(options, "step_layout", _LAYOUTS, "plain")
    separator = step_token(options, "\n", tokenizer_of(checkpoint))
    classes = step_classes(checkpoint.labels, options)
    return ProcessForm(
        form=TYPE,
        steps=StepFormat(layout="chat" if layout == "chat" else "plain", separator=separator),
        prefix=prefix,
        head=[(weight, bias)],
        layers=[head[weight][0]],
        classes=classes,
        unused=unused,
        aggregation=chosen(options, "aggregation", AGGREGATIONS, "min"),
        step_value=chosen(
            options, "step_value", STEP_VALUES, "logit" if len(classes) == 1 else "probability"
        ),
    )


def _head_shapes(config: PreTrainedConfig) -> dict[str, tuple[int, ...]]:
    with transformers_loading(), torch.device("meta"):
        model = AutoModelForTokenClassification.from_config(config, trust_remote_code=False)
    prefix = f"{model.base_model_prefix}."
    return {
        name: tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
        if not name.startswith(prefix)
    }
