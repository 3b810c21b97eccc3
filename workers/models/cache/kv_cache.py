"""A decoder's forward pass over what was kept of its sequences: the cache and the mask it is given."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from workers.models.cache.session_cache import Past


class Growing(Cache):
    """Past sequences next to each other, as transformers' models read and extend them. new: tokens of each.

    Those of a row stand at the left; what pads them to the longest, and where the new ones begin, is the mask's
    business: see `growing_mask`.
    """

    def __init__(self, pasts: Sequence[Past], new: Sequence[int], layers: int) -> None:
        super().__init__(layers=[_Layer(pasts, new, number) for number in range(layers)])


class _Layer(CacheLayerMixin):
    def __init__(self, pasts: Sequence[Past], new: Sequence[int], number: int) -> None:
        super().__init__()
        self._pasts, self._new, self._number = pasts, new, number
        self._longest = max(len(past.ids) for past in pasts)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """[rows, heads, longest new, width] -> [rows, heads, longest past + longest new, width]"""
        whole = [
            past.write(self._number, keys[:, :new], values[:, :new])
            for past, new, keys, values in zip(self._pasts, self._new, key_states, value_states, strict=True)
        ]
        if len(whole) == 1:
            return whole[0][0].unsqueeze(0), whole[0][1].unsqueeze(0)
        return self._stack_padded([keys for keys, _ in whole]), self._stack_padded(
            [values for _, values in whole]
        )

    def _stack_padded(self, parts: list[Tensor]) -> Tensor:
        heads, _, width = parts[0].shape
        out = parts[0].new_zeros(len(parts), heads, self._longest + max(self._new), width)
        for row, (part, past, new) in enumerate(zip(parts, self._pasts, self._new, strict=True)):
            start = len(past.ids)
            out[row, :, :start] = part[:, :start]
            out[row, :, self._longest : self._longest + new] = part[:, start:]
        return out

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._longest + query_length, 0

    def get_seq_length(self) -> int:
        return self._longest

    def get_max_length(self) -> int:
        return -1


def growing_mask(past: Tensor, new: int, dtype: torch.dtype, window: int | None = None) -> Tensor:
    """[rows, 1, new, longest past + new], additive: 0 for what a token sees, else the least number of `dtype`.

    past: [rows] long, the tokens each row has already. A token sees those, and the new ones up to itself; with a
    window, only those less than `window` before it.
    """
    longest = int(past.max())
    query = torch.arange(new, device=past.device).unsqueeze(1)
    key = torch.arange(longest + new, device=past.device).unsqueeze(0)
    is_new = key >= longest
    start = past.view(-1, 1, 1)
    seen = torch.where(is_new, key - longest <= query, key < start)
    if window is not None:
        place = torch.where(is_new, key - longest + start, key.expand_as(seen[:, :1]))
        seen = seen & (start + query - place < window)
    mask = torch.zeros(seen.shape, dtype=dtype, device=past.device)
    return mask.masked_fill_(~seen, torch.finfo(dtype).min).unsqueeze(1)
