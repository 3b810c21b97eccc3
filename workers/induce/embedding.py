"""Sentences as points on a sphere: the embedded encoder, on plain text."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from workers.device import choose_device
from workers.errors import RewardError
from workers.models.backbones.encoder import EMBEDDED, encode, encoder_folder, load_encoder

Vectors = NDArray[np.float32]
_LONGEST = 254  # tokens read of a text, without its frame
_AT_ONCE = 512
_CHARACTERS = 4000  # of a text that are tokenized at all
_KEPT = 10_000  # embeddings, 15 MB: runs of one task see and do much that is the same


class Embedder:
    """encoder: `embedded`, or a folder. device: as torch names it, or `auto`. Raises RewardError."""

    def __init__(self, encoder: str = EMBEDDED, device: str = "cpu") -> None:
        folder: Path = encoder_folder(encoder)
        self._model = load_encoder(folder).to(choose_device(device))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._kept = OrderedDict[bytes, Vectors]()
        self._frame = (_id_of(self._tokenizer, "[CLS]"), _id_of(self._tokenizer, "[SEP]"))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """[texts, hidden], of unit length; [0, 0] of none. Equal texts are read once, those of late too."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = [
            hashlib.blake2b(text[:_CHARACTERS].encode("utf-8", "surrogatepass")).digest() for text in texts
        ]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        for start in range(0, len(new), _AT_ONCE):
            part = dict(islice(new.items(), start, start + _AT_ONCE))
            with torch.no_grad():
                rows = encode(self._model, [self._ids(text) for text in part.values()]).cpu().numpy()
            found |= zip(part, rows, strict=True)
        for key, row in found.items():
            self._kept[key] = row.copy() if row.base is not None else row  # not the batch it came in
            self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return np.stack([found[key] for key in keys])

    def _ids(self, text: str) -> tuple[int, ...]:
        first, last = self._frame
        ids = self._tokenizer.encode(text[:_CHARACTERS], add_special_tokens=False).ids[:_LONGEST]
        return (first, *ids, last)


def _id_of(tokenizer: Tokenizer, name: str) -> int:
    found = tokenizer.token_to_id(name)
    if found is None:
        raise RewardError(f"the encoder's tokenizer has no {name}; use a BERT-type encoder.")
    return int(found)
