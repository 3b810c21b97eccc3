"""A small CLIPModel of transformers, trained on frames with captions (contrastive loss of arXiv 2103.00020, in which a
caption that several frames of a batch have counts as right for each of them), saved as public ones are."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from torch.nn import functional

_SHAPE = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
_LONGEST, _PATCH, _SIZE = 24, 12, 32
# Of frames that are one bright colour but for a few lines.
_MEAN, _STD = (0.9, 0.9, 0.9), (0.15, 0.15, 0.15)
BATCH, PEAK = 64, 7e-4  # at a rate of 1e-3 all embeddings become the same


def train_two_towers(
    folder: Path,
    frames: Sequence[NDArray[np.uint8]],
    caption: Callable[[int, random.Random], str],
    words: Sequence[str],
    *,
    steps: int,
    seed: int,
) -> float:
    """Write the folder; the loss of the last tenth. caption: of the frame with this index, another each time."""
    torch.manual_seed(seed)
    dice = random.Random(seed)
    tokenizer = _tokenizer(words)
    side = frames[0].shape[0]
    model: Any = transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config=_SHAPE
            | {"num_hidden_layers": 1, "max_position_embeddings": _LONGEST, "vocab_size": len(tokenizer)}
            | {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
            vision_config=_SHAPE | {"num_hidden_layers": 2, "image_size": side, "patch_size": _PATCH},
            projection_dim=_SIZE,
        )
    )
    pixels = torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (_MEAN, _STD))
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.98), weight_decay=0.05)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=PEAK, total_steps=steps)
    losses = []
    for _ in range(steps):
        chosen = dice.sample(range(len(frames)), min(BATCH, len(frames)))
        texts = [caption(index, dice) for index in chosen]
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        out = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            pixel_values=(pixels[chosen].float() / 255.0 - mean) / std,
        )
        loss = _contrastive(out.logits_per_image, texts)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
        losses.append(loss.item())
    _save(folder, model, tokenizer, side)
    last = losses[-max(1, steps // 10) :]
    return sum(last) / len(last)


def _contrastive(logits: Tensor, texts: Sequence[str]) -> Tensor:
    same = torch.tensor([[float(a == b) for b in texts] for a in texts])
    targets = same / same.sum(1, keepdim=True)
    return (functional.cross_entropy(logits, targets) + functional.cross_entropy(logits.T, targets)) / 2


def _tokenizer(words: Sequence[str]) -> transformers.PreTrainedTokenizerFast:
    # Not 2 for </s>: transformers reads CLIP's texts at their largest id where the configuration says so.
    known = {word: place for place, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *words])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=_LONGEST, **names
    )


def _save(folder: Path, model: Any, tokenizer: Any, side: int) -> None:
    square = {"height": side, "width": side}
    processor = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size=square, image_mean=list(_MEAN), image_std=list(_STD)
    )
    for part in (model, tokenizer, processor):
        part.save_pretrained(folder)
