"""What the importers of process reward models have in common: tensors of a decoder with a head, and their manifest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerBase

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors
from workers.models.backbones.decoder import read_config
from workers.models.files import WEIGHTS
from workers.models.kinds.process_decoder import KIND, step_heads_config, step_renderer
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import StepFormat

AGGREGATIONS = ("min", "mean", "product", "last")
STEP_VALUES = ("probability", "logit")
STEP_OPTIONS = ("step_token", "step_value", "aggregation")
_LM_HEAD = "lm_head.weight"
_AGGREGATED = {
    "min": "the lowest of its steps",
    "mean": "the mean of its steps",
    "product": "the product of its steps",
    "last": "that of its last step",
}
_ESCAPES = {"\\n": "\n", "\\t": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessForm:
    """How a process reward model is read; see `workers.models.kinds.process_decoder`.

    head: names of the weight and bias ("" for none) of each linear map. layers: their outputs. classes: names of the
    outputs, `good` and `bad` among them; only `good` where there is one. rows: of an LM head. unused: tensors that are
    kept only to keep the checkpoint whole.
    """

    form: str
    steps: StepFormat
    prefix: str
    head: Sequence[tuple[str, str]]
    layers: Sequence[int]
    classes: Sequence[str]
    rows: Sequence[int] | None = None
    unused: Sequence[str] = ()
    aggregation: str
    step_value: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "form": self.form,
            "prefix": self.prefix,
            "head": [list(names) for names in self.head],
            "layers": [*self.layers],
            "classes": [*self.classes],
            "rows": None if self.rows is None else [*self.rows],
            "unused": [*self.unused],
            "aggregation": self.aggregation,
            "step_value": self.step_value,
        }

    @property
    def reward_words(self) -> str:
        number = {
            "probability": "the probability of its good class",
            "logit": "the log-odds of its good class",
        }[self.step_value]
        return f"of a step, {number}; of a trajectory, {_AGGREGATED[self.aggregation]}"

    @property
    def places(self) -> str:
        if self.steps.layout == "turns":
            return f"at the token before the answer {self.steps.answer!r} to each agent step"
        return f"at the end of the separator {self.steps.separator!r} after each agent step"


def decoder_config(checkpoint: Checkpoint) -> PreTrainedConfig:
    """Raises RewardError for an architecture that transformers does not know without the checkpoint's own code."""
    return read_config(checkpoint.folder)


def base_shapes(config: PreTrainedConfig) -> dict[str, tuple[int, ...]]:
    """By name, the shapes of the tensors of the model without a head."""
    with transformers_loading(), torch.device("meta"):
        base = AutoModel.from_config(config, trust_remote_code=False)
    return {name: tuple(tensor.shape) for name, tensor in base.state_dict().items()}


def base_prefix(config: PreTrainedConfig) -> str:
    with transformers_loading(), torch.device("meta"):
        return f"{AutoModel.from_config(config, trust_remote_code=False).base_model_prefix}."


def require_form(
    checkpoint: Checkpoint,
    prefix: str,
    shapes: Mapping[str, tuple[int, ...]],
    head: Mapping[str, tuple[int, ...]],
) -> tuple[str, ...]:
    """The tensors that are there without being read: an LM head. Raises RewardError naming what is missing, or more."""
    lm_head = {
        name: checkpoint.tensors[name].shape
        for name in (_LM_HEAD,)
        if name in checkpoint.tensors and name not in head
    }
    checkpoint.require_tensors(
        {prefix + name: shape for name, shape in shapes.items()} | dict(head) | lm_head
    )
    return tuple(lm_head)


def tokenizer_of(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    checkpoint.require_tokenizer()
    found: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        checkpoint.folder, local_files_only=True, trust_remote_code=False
    )
    return found


def step_token(options: ImportOptions, default: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """What separates steps, `\\n` written out being a new line. Raises RewardError for one that is no text."""
    text = options.step_token or default
    for written, meant in _ESCAPES.items():
        text = text.replace(written, meant)
    if not tokenizer.encode(text, add_special_tokens=False):
        raise RewardError(
            f"step_token = {text!r} has no tokens in this model's vocabulary; name what the model's card says stands "
            "between steps.",
            pointer="/options/step_token",
        )
    return text


def chosen(options: ImportOptions, name: str, known: Sequence[str], default: str) -> str:
    """The value of an option. Raises RewardError for one that is not known."""
    value = getattr(options, name) or default
    if value not in known:
        raise RewardError(
            f"{name} = {value!r} is not known; known are {', '.join(known)}.", pointer=f"/options/{name}"
        )
    return str(value)


def recognised_process(
    checkpoint: Checkpoint,
    form: ProcessForm,
    options: ImportOptions,
    *,
    type_: str,
    because: str,
    labels: Sequence[str],
    notes: Sequence[str] = (),
) -> Recognised:
    max_tokens = longest_input(checkpoint, options.max_tokens)
    # Raises RewardError where the model or its template cannot be used.
    step_renderer(checkpoint.folder, {"max_tokens": max_tokens, "steps": form.steps.to_dict()})
    return Recognised(
        type=type_,
        architecture=checkpoint.architecture,
        because=because,
        labels=tuple(labels),
        reward=form.reward_words,
        template=template_words(form.steps),
        reads=form.places,
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=(*notes, *_step_notes(form)),
    )


def convert_process(
    checkpoint: Checkpoint, form: ProcessForm, found: Recognised, folder: Path
) -> dict[str, Any]:
    """Write the artifact's files: the checkpoint's own tensors and tokenizer; its part of the manifest."""
    config = decoder_config(checkpoint)
    names = [*form.unused, *(name for pair in form.head for name in pair if name)]
    names += [form.prefix + name for name in base_shapes(config)]
    copy_tensors(
        [NamedTensor(name, checkpoint.tensors[name]) for name in dict.fromkeys(names)], folder / WEIGHTS
    )
    copy_tokenizer(checkpoint, folder)
    write_config(checkpoint.config, folder)
    process = form.to_dict()
    heads = step_heads_config(process, int(config.get_text_config(decoder=True).hidden_size))
    return {
        "backbone": {"kind": KIND, "architecture": config.model_type, "lora_rank": 0},
        "process": process,
        "heads": {"ensemble": 1, "labels": [*heads.labels]},
        "text": {"max_tokens": found.max_tokens, "speakers": False, "steps": form.steps.to_dict()},
        "step_rule": found.reads,
        "objective": "process",
        "criteria": {},
        "aggregation": form.aggregation,
        "reward_from": "probability" if form.step_value == "probability" else "labels",
    }


def template_words(steps: StepFormat) -> str:
    if steps.layout == "chat":
        return "its own chat template; consecutive agent steps are one message, each with the separator at its end"
    if steps.layout == "turns":
        return "its own chat template; each agent step is a message of the user that the model answers"
    return "plain text: the task, then the agent steps with the separator after each; no chat template"


def _step_notes(form: ProcessForm) -> list[str]:
    notes = [
        "A step is an agent step of the trajectory. What it calls is written into its text; what it gets back follows "
        "as a message of the user.",
        "The separator and special tokens in messages are broken up.",
    ]
    if form.steps.layout == "plain":
        notes.append("Messages of the task are joined by empty lines, without the names of their roles.")
    return [*notes, "Messages after the last agent step are not read."]
