"""Small random encoders of each class, written by sentence-transformers and transformers themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "The refund was sent to the customer on Tuesday.",
    "Zürich, naïve; 42 orders -- LOST (again)!",
    "a",
    "the order was lost and the refund was not sent " * 2,
]
SIZE, LAYERS = 32, 3
_BERT = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}
_ROBERTA = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_SHAPE = {"hidden_size": SIZE, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "intermediate_size": 64}
# Far from zero, so that texts differ and an error of position or type is seen.
_RANDOM = {"initializer_range": 0.4}


def _tokenizer(kind: str, names: dict[str, str], *, single: str | None = None) -> PreTrainedTokenizerFast:
    """kind: WordPiece, BPE (of bytes) or Unigram. single: what stands around a text, by the names of its tokens."""
    special = list(names.values())
    made: dict[str, tuple[Any, Any, Any, Any, Any]] = {
        "WordPiece": (
            models.WordPiece(unk_token="[UNK]"),
            trainers.WordPieceTrainer(vocab_size=200, special_tokens=special),
            normalizers.BertNormalizer(),
            pre_tokenizers.BertPreTokenizer(),
            decoders.WordPiece(),
        ),
        "BPE": (
            models.BPE(),
            trainers.BpeTrainer(
                vocab_size=330, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
            ),
            normalizers.NFC(),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            decoders.ByteLevel(),
        ),
        "Unigram": (
            models.Unigram(),
            trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token=names.get("unk_token")),
            normalizers.NFKC(),
            pre_tokenizers.Metaspace(),
            decoders.Metaspace(),
        ),
    }
    model, trainer, normalizer, pre_tokenizer, decoder = made[kind]
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    tokenizer.train_from_iterator([*TEXTS, "query: passage: instruction"] * 3, trainer)
    pieces = [piece for piece in (single or "").split() if piece != "$A"]
    if single:
        ids = [(piece, tokenizer.token_to_id(piece)) for piece in dict.fromkeys(pieces)]
        tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)


def _checkpoint(folder: Path, name: str, tokenizer: PreTrainedTokenizerFast, **values: Any) -> Path:
    config = getattr(transformers, f"{name}Config")(
        **(_SHAPE | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id} | _RANDOM | values)
    )
    torch.manual_seed(1)
    getattr(transformers, f"{name}Model")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _sentence_transformer(folder: Path, checkpoint: Path, *modules: Any, **values: Any) -> Path:
    SentenceTransformer(
        modules=[Transformer(str(checkpoint)), *modules], device="cpu", **values
    ).save_pretrained(str(folder))
    return folder


def bert(folder: Path) -> Path:
    tokenizer = _tokenizer("WordPiece", _BERT, single="[CLS] $A [SEP]")
    raw = _checkpoint(folder / "raw", "Bert", tokenizer, max_position_embeddings=64)
    dense = Dense(SIZE, 12, activation_function=nn.Tanh())
    return _sentence_transformer(folder / "bert", raw, Pooling(SIZE, "mean"), dense, Normalize())


def roberta(folder: Path) -> Path:
    tokenizer = _tokenizer("BPE", _ROBERTA, single="<s> $A </s>")
    raw = _checkpoint(folder / "raw", "Roberta", tokenizer, max_position_embeddings=66, type_vocab_size=1)
    return _sentence_transformer(folder / "roberta", raw, Pooling(SIZE, ("cls", "max")))


def mpnet(folder: Path) -> Path:
    """With a longest text below its positions, and residual layers."""
    names = _ROBERTA | {"unk_token": "[UNK]"}
    raw = _checkpoint(
        folder / "raw",
        "MPNet",
        _tokenizer("WordPiece", names, single="<s> $A </s>"),
        max_position_embeddings=66,
    )
    made = [
        Pooling(SIZE, "mean_sqrt_len_tokens"),
        Dense(SIZE, 8, activation_function=nn.GELU(), use_residual=True),
    ]
    path = _sentence_transformer(folder / "mpnet", raw, *made)
    model = SentenceTransformer(str(path), device="cpu")
    model.max_seq_length = 20
    model.save_pretrained(str(path))
    return path


def deberta(folder: Path) -> Path:
    names = _BERT
    options = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
    raw = _checkpoint(
        folder / "raw",
        "DebertaV2",
        _tokenizer("Unigram", names, single="[CLS] $A [SEP]"),
        max_position_embeddings=64,
        type_vocab_size=0,
        position_biased_input=False,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        **options,
    )
    return _sentence_transformer(folder / "deberta", raw, Pooling(SIZE, "weightedmean"), LayerNorm(SIZE))


def modernbert(folder: Path) -> Path:
    tokenizer = _tokenizer("BPE", _BERT, single="[CLS] $A [SEP]")
    special = {
        f"{key}_token_id": tokenizer.convert_tokens_to_ids(f"[{key.upper()}]") for key in ("cls", "sep")
    }
    special |= {"bos_token_id": special["cls_token_id"], "eos_token_id": special["sep_token_id"]}
    raw = _checkpoint(
        folder / "raw", "ModernBert", tokenizer, max_position_embeddings=128, local_attention=16, **special
    )
    prompts = {"query": "query: ", "document": "passage: "}
    return _sentence_transformer(
        folder / "modernbert",
        raw,
        Pooling(SIZE, "cls"),
        Normalize(),
        prompts=prompts,
        default_prompt_name="query",
    )


def xlm_roberta(folder: Path) -> Path:
    """Its prompt is not pooled, as in INSTRUCTOR."""
    tokenizer = _tokenizer("Unigram", _ROBERTA, single="<s> $A </s>")
    raw = _checkpoint(folder / "raw", "XLMRoberta", tokenizer, max_position_embeddings=66, type_vocab_size=1)
    pooling = Pooling(SIZE, "mean", include_prompt=False)
    prompts = {"instruction": "instruction: "}
    return _sentence_transformer(
        folder / "xlm_roberta", raw, pooling, prompts=prompts, default_prompt_name="instruction"
    )


def qwen3(folder: Path) -> Path:
    """A causal model that is read at its last token."""
    names = {"eos_token": "<|end|>", "pad_token": "<|pad|>"}
    tokenizer = _tokenizer("BPE", names, single="$A <|end|>")
    raw = _checkpoint(
        folder / "raw", "Qwen3", tokenizer, max_position_embeddings=64, num_key_value_heads=2, head_dim=8
    )
    return _sentence_transformer(folder / "qwen3", raw, Pooling(SIZE, "lasttoken"), Normalize())


MAKERS: dict[str, Callable[[Path], Path]] = {
    made.__name__: made for made in (bert, roberta, mpnet, deberta, modernbert, xlm_roberta, qwen3)
}
