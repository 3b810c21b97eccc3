"""Folders with the shape of a public reward model: its config.json and the headers of its weights, and no weights.

The files of weights are as long as the real ones, and empty (sparse): nothing is read of them but their headers. The
tokenizer is a small one of bytes, with the special tokens and the chat template of the model's family.
"""

import json
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModel, AutoModelForSequenceClassification, LlamaConfig, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from workers.importing.internlm2 import internlm2_shapes

CONFIGS = Path(__file__).parent / "public_configs"
_LLAMA_3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_GEMMA = (
    "{{ bos_token }}{% for message in messages %}"
    "<start_of_turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}\n"
    "{{ message['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
_MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
    " {{ message['content'] }}{{ eos_token }}{% else %}[INST] {{ message['content'] }} [/INST]{% endif %}{% endfor %}"
)
_TULU = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
# By family: the template and its special tokens; the first two begin and end a text.
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "llama-3": (
        _LLAMA_3,
        ("<|begin_of_text|>", "<|eot_id|>", "[PAD]", "<|start_header_id|>", "<|end_header_id|>"),
    ),
    "chatml": (_CHATML, ("<|endoftext|>", "<|im_end|>", "<|pad|>", "<|im_start|>", "<extra_0>")),
    "gemma": (_GEMMA, ("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>")),
    "mistral": (_MISTRAL, ("<s>", "</s>", "<unk>")),
    "tulu": (_TULU, ("<|begin_of_text|>", "<|end_of_text|>", "<pad>")),
    "": ("", ("<s>", "</s>", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicModel:
    """A file of `public_configs`. heads: shapes of tensors outside of the layers, by name. reconstructed: what of it
    could only be inferred; empty: nothing. options: of the import. template: of FAMILIES."""

    name: str
    config: dict[str, Any]
    heads: dict[str, list[int]]
    licence: str
    template: str
    options: dict[str, Any]
    source: str
    reconstructed: str
    weights: str
    notes: list[str]

    @property
    def architecture(self) -> str:
        return str(self.config["architectures"][0])


@cache
def public_models() -> tuple[PublicModel, ...]:
    found = [PublicModel(**json.loads(path.read_text(encoding="utf-8"))) for path in CONFIGS.glob("*.json")]
    return tuple(sorted(found, key=lambda model: model.name.lower()))


def shapes(model: PublicModel) -> dict[str, tuple[int, ...]]:
    """By name, of all tensors: those of transformers' own class, on no device, and the heads."""
    heads = {name: tuple(shape) for name, shape in model.heads.items()}
    kind = str(model.config["model_type"])
    values = {key: value for key, value in model.config.items() if key not in ("auto_map", "architectures")}
    values.pop("model_type")
    if kind == "internlm2":
        return internlm2_shapes(LlamaConfig(**values)) | heads
    config: Any = CONFIG_MAPPING[kind](**values)
    with torch.device("meta"):
        if model.architecture.endswith("ForSequenceClassification"):
            whole = AutoModelForSequenceClassification.from_config(config)
            return {name: tuple(tensor.shape) for name, tensor in whole.state_dict().items()} | heads
        base = AutoModel.from_config(config)
    return {f"model.{name}": tuple(tensor.shape) for name, tensor in base.state_dict().items()} | heads


def write_folder(model: PublicModel, folder: Path) -> Path:
    """The checkpoint of the model without its numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config), encoding="utf-8")
    _write_weights(shapes(model), folder / "model.safetensors")
    family_tokenizer(model.template).save_pretrained(folder)
    return folder


def _write_weights(tensors: dict[str, tuple[int, ...]], path: Path) -> None:
    place, header = 0, {}
    for name, shape in tensors.items():
        size = 2
        for length in shape:
            size *= length
        header[name] = {"dtype": "BF16", "shape": [*shape], "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + place)


def family_tokenizer(family: str) -> PreTrainedTokenizerFast:
    """Of bytes, with the template and the special tokens of FAMILIES."""
    template, special = FAMILIES[family]
    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = {"bos_token": special[0], "eos_token": special[1], "pad_token": special[2]}
    if not template:
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "unk_token": "[UNK]"}
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, extra_special_tokens=[*special[3:]] if template else [], **names
    )
    if template:
        made.chat_template = template
    return made
