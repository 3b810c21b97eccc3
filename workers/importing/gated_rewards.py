"""Reward models with several attributes and a gating network, of the architecture that ArmoRM published.

Its code is not run: the layers are ours, and the tensors' names tell the architecture.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModel, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.conversations import checkpoint_renderer, template_notes, template_words
from workers.importing.decoder_classifier import reading_rule
from workers.importing.labels import RewardOutput, choose_output, criteria_of, heads_part
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors, read_tensor
from workers.models.backbones.decoder import read_config
from workers.models.backbones.gated_decoder import GatingShape
from workers.models.files import HEADS, WEIGHTS
from workers.models.kinds.decoder import STEP_RULE
from workers.models.kinds.gated_decoder import BASE
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text.gated_conversations import gate_ids

TYPE = "gated-rewards"
OPTIONS = ("labels",)
_REGRESSION, _TRANSFORM = "regression_layer.weight", "reward_transform_matrix"
_GATING = "gating.layers"
# In the order of the published model's card; its configuration does not name them.
_ARMORM = (
    *("helpsteer-helpfulness", "helpsteer-correctness", "helpsteer-coherence", "helpsteer-complexity"),
    *("helpsteer-verbosity", "ultrafeedback-overall_score", "ultrafeedback-instruction_following"),
    *(
        "ultrafeedback-truthfulness",
        "ultrafeedback-honesty",
        "ultrafeedback-helpfulness",
        "beavertails-is_safe",
    ),
    *("prometheus-score", "argilla-overall_quality", "argilla-judge_lm", "code-complexity", "code-style"),
    *("code-explanation", "code-instruction-following", "code-readability"),
)


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if _REGRESSION not in checkpoint.tensors or f"{_GATING}.0.weight" not in checkpoint.tensors:
        return None
    if checkpoint.config.get("model_type") not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return None
    config = read_config(checkpoint.folder)
    shape = _shape(checkpoint)
    checkpoint.require_tensors(_tensors(config, shape))
    output = _attributes(checkpoint, options)
    max_tokens = longest_input(checkpoint, options.max_tokens)
    if not checkpoint.chat_template:
        raise RewardError(
            f"{checkpoint.folder.name} has no chat template, and its gating network looks for the end of the prompt in "
            "one; save the one it was trained with as chat_template.jinja in the folder."
        )
    renderer = checkpoint_renderer(checkpoint, max_tokens, reading_rule(config))
    shown = renderer.tokenizer.decode(gate_ids(renderer))
    return Recognised(
        type=TYPE,
        architecture=checkpoint.architecture,
        because=f"it has a {_REGRESSION} of {shape.attributes} attributes and a network that weighs them",
        labels=output.names,
        reward="the sum of the attributes, each with the weight that the gating network gives it",
        template=template_words(checkpoint),
        reads=f"attributes at the last token of each agent step; weights where the last {shown!r} before it begins",
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=(
            "Its own code is not run: the layers are this version's, by the published architecture.",
            *template_notes(checkpoint, renderer),
        ),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    config, shape = read_config(checkpoint.folder), _shape(checkpoint)
    output = _attributes(checkpoint, options)
    names = [*_tensors(config, shape)]
    copy_tensors([NamedTensor(name, checkpoint.tensors[name]) for name in names], folder / WEIGHTS)
    copy_tokenizer(checkpoint, folder)
    write_config(checkpoint.config, folder)
    rule = reading_rule(config)
    return {
        "backbone": {"kind": "gated-decoder", "architecture": config.model_type},
        "gating": asdict(shape),
        "heads": _save_heads(read_tensor(checkpoint.tensors[_REGRESSION]).float(), output, folder),
        "text": {
            "max_tokens": found.max_tokens,
            "speakers": False,
            "whole": rule.as_json(),
            "gate": gate_ids(checkpoint_renderer(checkpoint, found.max_tokens, rule)),
        },
        "step_rule": STEP_RULE,
        "objective": "bradley_terry",
        "aggregation": "value",
        "reward_from": "scalar",
        "criteria": criteria_of(output),
    }


def _save_heads(regression: torch.Tensor, output: RewardOutput, folder: Path) -> dict[str, Any]:
    """Heads on states that end with the reward. regression: [attributes, width]."""
    width = regression.shape[1] + 1
    scalar = torch.zeros(1, 1, width)
    scalar[..., -1] = 1.0
    attributes = torch.cat([regression, regression.new_zeros(len(regression), 1)], 1)
    save_file(
        {"scalar.weight": scalar, "criterion.weight": attributes.unsqueeze(0).contiguous()}, folder / HEADS
    )
    return heads_part(output, width)


def _attributes(checkpoint: Checkpoint, options: ImportOptions) -> RewardOutput:
    count = checkpoint.tensors[_REGRESSION].shape[0]
    known = checkpoint.labels
    if len(known) != count or all(name.startswith("LABEL_") for name in known):
        is_armorm = count == len(_ARMORM) and checkpoint.architecture == "LlamaForRewardModelWithGating"
        known = _ARMORM if is_armorm else tuple(f"attribute-{number}" for number in range(1, count + 1))
    return choose_output(known, options, required=False)


def _shape(checkpoint: Checkpoint) -> GatingShape:
    attributes, width = checkpoint.tensors[_REGRESSION].shape
    count = sum(name.startswith(f"{_GATING}.") and name.endswith(".weight") for name in checkpoint.tensors)
    temperature = checkpoint.config.get("gating_temperature", 10)
    return GatingShape(
        width=width,
        attributes=attributes,
        layers=count,
        inner=checkpoint.tensors[f"{_GATING}.0.weight"].shape[0],
        temperature=float(temperature),
    )


def _tensors(config: PreTrainedConfig, shape: GatingShape) -> dict[str, tuple[int, ...]]:
    with transformers_loading(), torch.device("meta"):
        base = AutoModel.from_config(config, trust_remote_code=False)
    found = {f"{BASE}{name}": tuple(tensor.shape) for name, tensor in base.state_dict().items()}
    found |= {
        _REGRESSION: (shape.attributes, shape.width),
        _TRANSFORM: (shape.attributes, shape.attributes),
        "gating.logit_scale": (1,),
    }
    widths = [shape.width, *[shape.inner] * (shape.layers - 1), shape.attributes]
    for number in range(shape.layers):
        found[f"{_GATING}.{number}.weight"] = (widths[number + 1], widths[number])
        found[f"{_GATING}.{number}.bias"] = (widths[number + 1],)
    return found
