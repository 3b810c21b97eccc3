"""Small encoders of texts and pictures with random weights, in folders as transformers writes them."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from workers.importing.importer import run
from workers.json_files import write_json

WORDS = [
    *("a", "an", "the", "red", "blue", "page", "cart", "pole", "upright", "tilted"),
    *("with", "of", "car", "on", "hill", "valley", "done"),
]
SIDE = 32
_VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": 8,
    "initializer_range": 0.4,
    "initializer_factor": 6.0,
}
_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 16,
    "initializer_range": 0.4,
    "initializer_factor": 6.0,
}


def word_tokenizer(words: list[str], longest: int = 16) -> PreTrainedTokenizerFast:
    """A word is a token; the text stands between <s> and </s>."""
    vocabulary = {word: place for place, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    )


def import_dual_encoder(folder: Path) -> Path:
    """The artifact of a likeness to a red page, imported from a small encoder."""
    public = save_dual_encoder(folder / "public")
    options = {"goal": "a red page", "baseline": "a page"}
    write_json(folder / "request.json", {"checkpoint": str(public), "options": options})
    run(folder)
    return folder / "model"


def save_dual_encoder(folder: Path, kind: str = "clip", *, seed: int = 3) -> Path:
    """kind: clip or siglip."""
    tokenizer = word_tokenizer(WORDS)
    text = _TEXT | {"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    torch.manual_seed(seed)
    if kind == "clip":
        config: Any = transformers.CLIPConfig(text_config=text, vision_config=_VISION, projection_dim=24)
        model: Any = transformers.CLIPModel(config)
        pictures: Any = transformers.CLIPImageProcessorPil(
            size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
        )
    else:
        config = transformers.SiglipConfig(text_config=text, vision_config=_VISION)
        model = transformers.SiglipModel(config)
        pictures = transformers.SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    pictures.save_pretrained(folder)
    return folder
