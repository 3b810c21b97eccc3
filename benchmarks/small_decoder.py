"""A decoder with random weights, and a tokenizer trained on the texts it is to read."""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast, Qwen2Config
from transformers.utils import logging

from workers.schema import FeedbackRecord
from workers.schema.records import record_trajectories
from workers.text.segments import segments

CHATML = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
_MARKS = ["<pad>", "<|im_start|>", "<|im_end|>"]


def save_small_decoder(folder: Path, records: Iterable[FeedbackRecord], *, seed: int = 0) -> Path:
    """Of 41 million parameters, 10 layers of width 512, for what is said in these records."""
    return save_decoder(folder, trajectory_texts(records), seed=seed)


def save_decoder(
    folder: Path,
    texts: Iterable[str],
    *,
    seed: int = 0,
    vocabulary: int = 16_384,
    width: int = 512,
    layers: int = 10,
    heads: int = 8,
    apart: str = "",
) -> Path:
    """As a model of the hub lies on a disk, of Qwen2's architecture.

    apart: a pattern of what is never part of a longer token; all between may become one, be it sentences. Without it,
    tokens end where words do. With it the architecture is Llama's: what lies next to a Qwen2 is cut into words by
    transformers, whatever its tokenizer says.
    """
    logging.disable_progress_bar()
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if apart:
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(apart), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=_MARKS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<pad>", chat_template=CHATML
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = (LlamaConfig if apart else Qwen2Config)(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=None,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def trajectory_texts(records: Iterable[FeedbackRecord]) -> Iterable[str]:
    seen: set[str] = set()
    for record in records:
        for trajectory in record_trajectories(record):
            for step in trajectory.steps:
                for piece in segments(step):
                    if piece.text not in seen:
                        seen.add(piece.text)
                        yield piece.text
