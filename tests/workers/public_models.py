"""Small public reward models with random weights, written by the classes of transformers that the real ones have."""

import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from tests.workers.decoders import configs, tokenizer
from workers.schema import Task, Trajectory
from workers.schema.messages import from_messages

LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}[INST] {{ message.content }} [/INST]"
    "{% elif message.role == 'assistant' %} {{ message.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
CHATS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": "Where is order 17?"}, {"role": "assistant", "content": "It was sent."}],
    [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "  Lost!\n\nZürich 谢谢 "},
    ],
    [
        {"role": "user", "content": "A refund?"},
        {"role": "assistant", "content": "Which order?"},
        {"role": "user", "content": "the order was sent, or lost"},
        {"role": "assistant", "content": "A refund is good."},
    ],
]


def save_classifier(
    folder: Path, name: str = "llama", *, labels: int = 1, template: str | None = LLAMA3, **changes: Any
) -> Path:
    """A causal sequence classifier. changes: of its configuration."""
    torch.manual_seed(3)
    config = configs()[name]
    config.num_labels = labels
    config.update(changes)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tokenizer(template).save_pretrained(folder)
    return folder


def transformers_logits(folder: Path, messages: list[dict[str, str]]) -> torch.Tensor:
    """[labels], as the model's card says: `model(**tokenizer.apply_chat_template(messages))`."""
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = AutoTokenizer.from_pretrained(folder).apply_chat_template(
        messages, tokenize=True, return_dict=True, return_tensors="pt"
    )
    with torch.no_grad():
        return model(**inputs).logits[0]  # type: ignore[no-any-return]


def trajectory_of(messages: list[dict[str, str]]) -> Trajectory:
    return Trajectory(steps=from_messages(messages), task=Task(id="t"))


def pair_tokenizer() -> PreTrainedTokenizerFast:
    """Of word pieces, with BERT's frame: [CLS] question [SEP] answer [SEP]."""
    letters = string.ascii_letters + string.digits + string.punctuation
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    made = Tokenizer(
        models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    frame = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=frame
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=128, **names)


def save_bidirectional(folder: Path, name: str, *, labels: int = 1, template: str | None = None) -> Path:
    """A classifier that sees all of its text: bert, roberta, deberta-v2, modernbert."""
    torch.manual_seed(4)
    tokens = pair_tokenizer()
    tokens.chat_template = template
    shape: dict[str, Any] = {
        "vocab_size": len(tokens),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 160,
        "initializer_range": 0.2,
        "pad_token_id": 0,
        "num_labels": labels,
    }
    if name == "deberta-v2":
        more = {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"]}
        shape |= more | {"norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}
    if name == "modernbert":
        ids = dict.fromkeys(("bos_token_id", "cls_token_id"), 2) | dict.fromkeys(
            ("eos_token_id", "sep_token_id"), 3
        )
        shape |= ids | {
            "initializer_cutoff_factor": 2.0,
            "local_attention": 16,
            "global_attn_every_n_layers": 2,
        }
    config = AutoConfig.for_model(name, **shape)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def pair_logits(folder: Path, question: str, answer: str) -> torch.Tensor:
    """[labels], as the cards of models for pairs say: `model(**tokenizer(question, answer))`."""
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return model(**tokens([(question, answer)], return_tensors="pt")).logits[0]  # type: ignore[no-any-return]
