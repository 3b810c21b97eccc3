"""A trunk that is not trained: its states are computed once, and only the heads on them learn."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from workers.models.backbones.base import Backbone
from workers.models.states import States, join

_AT_ONCE = 64


class StateCache:
    """States by item, on the device of the heads. inner: what the trunk itself remembers, see `Backbone.new_cache`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self._rows: dict[bytes, Tensor] = {}

    def states(self, backbone: Backbone, batch: Sequence[Any]) -> States:
        missing = {one.key: one for one in batch if one.key not in self._rows}
        if missing:
            with torch.no_grad():
                found = backbone.states(list(missing.values()), cache=self.inner)
            for key, (first, steps) in zip(missing, found.split(), strict=True):
                self._rows[key] = torch.cat([first.unsqueeze(0), steps]).clone()
        rows = [self._rows[one.key] for one in batch]
        return join([(one[0], one[1:]) for one in rows], [0] * len(rows))

    def fill(self, backbone: Backbone, rendered: Sequence[Any]) -> Iterator[int]:
        """Ahead of the training, always in the same groups, so that a run that is resumed sees the same rounding."""
        if self.inner is not None:
            yield from backbone.encode_ahead(rendered, self.inner)
        by_key = {one.key: one for one in rendered}
        ordered = [by_key[key] for key in sorted(by_key, key=lambda key: (by_key[key].tokens, key))]
        for start in range(0, len(ordered), _AT_ONCE):
            self.states(backbone, ordered[start : start + _AT_ONCE])
            yield min(start + _AT_ONCE, len(ordered))
