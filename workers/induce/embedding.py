"""Sentences as points on a sphere: the embedded encoder, on plain text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from workers.errors import RewardError
from workers.models.encoder import EMBEDDED, encode, encoder_folder, load_encoder

Vectors = NDArray[np.float32]
_LONGEST = 254  # tokens read of a text, without its frame
_AT_ONCE = 512
_CHARACTERS = 4000  # of a text that are tokenized at all


class Embedder:
    """encoder: `embedded`, or a folder. Raises RewardError where there is none."""

    def __init__(self, encoder: str = EMBEDDED) -> None:
        folder: Path = encoder_folder(encoder)
        self._model = load_encoder(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._frame = (_id_of(self._tokenizer, "[CLS]"), _id_of(self._tokenizer, "[SEP]"))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """[texts, hidden], of unit length; [0, 0] of none. Equal texts are read once."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros((0, 0), dtype=np.float32)
        rows = []
        with torch.no_grad():
            for start in range(0, len(distinct), _AT_ONCE):
                ids = [self._ids(text) for text in distinct[start : start + _AT_ONCE]]
                rows.append(encode(self._model, ids).numpy())
        place = {text: number for number, text in enumerate(distinct)}
        found: Vectors = np.concatenate(rows)[[place[text] for text in texts]]
        return found

    def _ids(self, text: str) -> tuple[int, ...]:
        first, last = self._frame
        ids = self._tokenizer.encode(text[:_CHARACTERS], add_special_tokens=False).ids[:_LONGEST]
        return (first, *ids, last)


def _id_of(tokenizer: Tokenizer, name: str) -> int:
    found = tokenizer.token_to_id(name)
    if found is None:
        raise RewardError(f"the encoder's tokenizer has no {name}; use a BERT-type encoder.")
    return int(found)
