"""Sentence embeddings: the embedded encoder, on plain text."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from workers.device import choose_device
from workers.errors import RewardError
from workers.induce.step_features import FloatArray
from workers.models.backbones.encoder import EMBEDDED, encode, encoder_folder, load_encoder
from workers.models.backbones.layer_encoder import LayerEncoder, middle_layer

_MAX_TOKENS = 254  # tokens read of a text, without special tokens
_BATCH_SIZE = 512
_MAX_CHARACTERS = 4000  # of a text that are tokenized at all
_CACHE_SIZE = 10_000  # embeddings, 15 MB: trajectories of one task have many equal steps


class Embedder:
    """encoder: `embedded`, or a folder. device: as torch names it, or `auto`. Raises RewardError.

    is_middle: texts are read after a middle layer, as hybrid models do, instead of after the last.
    """

    def __init__(self, encoder: str = EMBEDDED, device: str = "cpu", *, is_middle: bool = False) -> None:
        folder: Path = encoder_folder(encoder)
        model = load_encoder(folder)
        read = LayerEncoder(model, middle_layer(model)) if is_middle else model
        self._model = read.to(choose_device(device))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._cache = OrderedDict[bytes, FloatArray]()
        self._special_tokens = (_token_id(self._tokenizer, "[CLS]"), _token_id(self._tokenizer, "[SEP]"))

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """[texts, hidden], of unit length; [0, 0] of none. Equal texts are encoded once, also those of recent calls."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = [
            hashlib.blake2b(text[:_MAX_CHARACTERS].encode("utf-8", "surrogatepass")).digest()
            for text in texts
        ]
        found = {key: self._cache[key] for key in keys if key in self._cache}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        for start in range(0, len(new), _BATCH_SIZE):
            part = dict(islice(new.items(), start, start + _BATCH_SIZE))
            with torch.no_grad():
                rows = encode(self._model, [self._ids(text) for text in part.values()]).cpu().numpy()
            found |= zip(part, rows, strict=True)
        for key, row in found.items():
            self._cache[key] = row.copy() if row.base is not None else row  # not the batch it came in
            self._cache.move_to_end(key)
        while len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return np.stack([found[key] for key in keys])

    def _ids(self, text: str) -> tuple[int, ...]:
        first, last = self._special_tokens
        ids = self._tokenizer.encode(text[:_MAX_CHARACTERS], add_special_tokens=False).ids[:_MAX_TOKENS]
        return (first, *ids, last)


def _token_id(tokenizer: Tokenizer, name: str) -> int:
    found = tokenizer.token_to_id(name)
    if found is None:
        raise RewardError(f"the encoder's tokenizer has no {name}; use a BERT-type encoder.")
    return int(found)
