"""Process reward models of the Qwen2.5-Math-PRM type (arXiv 2501.07301): `...ForProcessRewardModel`.

A decoder, Linear, ReLU, Linear to two logits (bad, good), read at `<extra_0>` after each step of the assistant's
message. Their own code is not run: this is all it does.
"""

from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
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
from workers.schema.import_options import ImportOptions
from workers.text import StepFormat

TYPE = "process-classifier"
OPTIONS = STEP_OPTIONS
_SUFFIX = "ForProcessRewardModel"
_SEPARATOR = "<extra_0>"
_FIRST, _SECOND = "score.0", "score.2"
_CLASSES = ("bad", "good")


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if not checkpoint.architecture.endswith(_SUFFIX):
        return None
    form = _form(checkpoint, options)
    return recognised_process(
        checkpoint,
        form,
        options,
        type_=TYPE,
        because=f"config.json names {checkpoint.architecture}, and the weights are those of a decoder with "
        f"{_FIRST} and {_SECOND} as its head; its own code is not run",
        labels=_CLASSES,
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    return convert_process(checkpoint, _form(checkpoint, options), found, folder)


def _form(checkpoint: Checkpoint, options: ImportOptions) -> ProcessForm:
    config = decoder_config(checkpoint)
    prefix = base_prefix(config)
    width = int(config.get_text_config(decoder=True).hidden_size)
    head = {
        f"{_FIRST}.weight": (width, width),
        f"{_FIRST}.bias": (width,),
        f"{_SECOND}.weight": (len(_CLASSES), width),
        f"{_SECOND}.bias": (len(_CLASSES),),
    }
    unused = require_form(checkpoint, prefix, base_shapes(config), head)
    tokenizer = tokenizer_of(checkpoint)
    if not options.step_token and len(tokenizer.encode(_SEPARATOR, add_special_tokens=False)) != 1:
        raise RewardError(
            f"the vocabulary of {checkpoint.folder.name} has no {_SEPARATOR}, which these models are read at; name the "
            "token that ends a step with step_token.",
            pointer="/options/step_token",
        )
    return ProcessForm(
        form=TYPE,
        steps=StepFormat(layout="chat", separator=step_token(options, _SEPARATOR, tokenizer)),
        prefix=prefix,
        head=[(f"{name}.weight", f"{name}.bias") for name in (_FIRST, _SECOND)],
        layers=[width, len(_CLASSES)],
        classes=_CLASSES,
        unused=unused,
        aggregation=chosen(options, "aggregation", AGGREGATIONS, "product"),
        step_value=chosen(options, "step_value", STEP_VALUES, "probability"),
    )
