"""Small decoders of many architectures with random weights, and a tokenizer with chat templates, made on the spot."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

WINDOW = 5
MARKS = [
    *("<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|start_header_id|>"),
    *("<|end_header_id|>", "<|eot_id|>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]"),
]
CHATML = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
_TEXT = "hello the order was sent or lost, a refund is good and bad; what of it? yes no thank you "


def configs() -> dict[str, PreTrainedConfig]:
    """By name. `-window`: with a sliding window of WINDOW tokens in all or some layers."""
    shape: dict[str, Any] = {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.2,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }
    window = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}
    gpt2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 512, "initializer_range": 0.2}
    ids = {"vocab_size": 400, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    return {
        "llama": LlamaConfig(**shape),
        "qwen2": Qwen2Config(**shape),
        "qwen2-window": Qwen2Config(**shape, **window),
        "qwen3": Qwen3Config(**shape, head_dim=8),
        "mistral": MistralConfig(**shape, sliding_window=None),
        "mistral-window": MistralConfig(**shape, sliding_window=WINDOW),
        "gemma": GemmaConfig(**shape, head_dim=8),
        "gemma2-window": Gemma2Config(**shape, head_dim=8, sliding_window=WINDOW),
        "gemma3-window": Gemma3TextConfig(**shape, head_dim=8, sliding_window=WINDOW),
        "gpt2": GPT2Config(**gpt2, **ids),
        "phi3-window": Phi3Config(**shape, sliding_window=WINDOW),
    }


def recurrent() -> PreTrainedConfig:
    """No attention: no mask keeps a branch from seeing its neighbour."""
    return MambaConfig(vocab_size=400, hidden_size=32, num_hidden_layers=2)


def tokenizer(
    template: str | None = CHATML, *, adds_bos: bool = False, **fields: Any
) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 400 tokens. adds_bos: it puts `<s>` before a text by itself."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=MARKS, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([_TEXT] * 20, trainer)
    if adds_bos:
        from tokenizers.processors import TemplateProcessing

        made.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    given = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"} | fields
    return PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=template, additional_special_tokens=MARKS[3:], **given
    )


def base_model(config: PreTrainedConfig, *, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    try:
        return AutoModel.from_config(config, attn_implementation="sdpa").eval()
    except ValueError:
        return AutoModel.from_config(config, attn_implementation="eager").eval()


def save_decoder(
    folder: Path, name: str = "llama", *, shape: dict[str, int] | None = None, seed: int = 1, **tokens: Any
) -> Path:
    """As a model of the hub lies on a disk, LM head included. shape: what of its configuration is to be otherwise."""
    torch.manual_seed(seed)
    config = configs()[name]
    config.update(shape or {})
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer(**tokens).save_pretrained(folder)
    return folder
