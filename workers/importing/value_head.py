"""Process reward models of the Skywork-o1-Open-PRM type: a causal language model with TRL's value head.

`v_head.summary` gives the log-odds that a step is good, at the new line after it. Plain text, no chat template.
"""

from pathlib import Path
from typing import Any

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

TYPE = "value-head"
OPTIONS = STEP_OPTIONS
_HEAD, _WRAPPED = "v_head.summary", "pretrained_model."


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if f"{_HEAD}.weight" not in checkpoint.tensors:
        return None
    form = _form(checkpoint, options)
    return recognised_process(
        checkpoint,
        form,
        options,
        type_=TYPE,
        because=f"the weights have the value head {_HEAD} on a {checkpoint.config.get('model_type')} model",
        labels=("good",),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    return convert_process(checkpoint, _form(checkpoint, options), found, folder)


def _form(checkpoint: Checkpoint, options: ImportOptions) -> ProcessForm:
    config = decoder_config(checkpoint)
    prefix = base_prefix(config)
    if any(name.startswith(_WRAPPED) for name in checkpoint.tensors):
        prefix = _WRAPPED + prefix
    width = int(config.get_text_config(decoder=True).hidden_size)
    head = {f"{_HEAD}.weight": (1, width), f"{_HEAD}.bias": (1,)}
    unused = require_form(checkpoint, prefix, base_shapes(config), head)
    separator = step_token(options, "\n", tokenizer_of(checkpoint))
    return ProcessForm(
        form=TYPE,
        steps=StepFormat(layout="plain", separator=separator, after_task="\n"),
        prefix=prefix,
        head=[(f"{_HEAD}.weight", f"{_HEAD}.bias")],
        layers=[1],
        classes=("good",),
        unused=unused,
        aggregation=chosen(options, "aggregation", AGGREGATIONS, "min"),
        step_value=chosen(options, "step_value", STEP_VALUES, "probability"),
    )
