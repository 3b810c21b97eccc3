"""States of a frozen backbone: computed once, since only the heads on them learn."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from workers.models.backbones.base import Backbone
from workers.models.states import States, join

_AT_ONCE = 64


class StateCache:
    """States by item, on the device of the heads. backbone_cache: the backbone's own, see `Backbone.new_cache`."""

    def __init__(self, backbone_cache: Any) -> None:
        self.backbone_cache = backbone_cache
        self._rows: dict[bytes, Tensor] = {}

    def states(self, backbone: Backbone, batch: Sequence[Any]) -> States:
        missing = {item.key: item for item in batch if item.key not in self._rows}
        if missing:
            with torch.no_grad():
                found = backbone.states(list(missing.values()), cache=self.backbone_cache)
            for key, (first, steps) in zip(missing, found.split(), strict=True):
                self._rows[key] = torch.cat([first.unsqueeze(0), steps]).clone()
        rows = [self._rows[item.key] for item in batch]
        return join([(row[0], row[1:]) for row in rows], [0] * len(rows))

    def fill(self, backbone: Backbone, rendered: Sequence[Any]) -> Iterator[int]:
        """Ahead of the training, always in the same groups, so that a run that is resumed sees the same rounding."""
        if self.backbone_cache is not None:
            yield from backbone.encode_ahead(rendered, self.backbone_cache)
        by_key = {item.key: item for item in rendered}
        ordered = [by_key[key] for key in sorted(by_key, key=lambda key: (by_key[key].tokens, key))]
        for start in range(0, len(ordered), _AT_ONCE):
            self.states(backbone, ordered[start : start + _AT_ONCE])
            yield min(start + _AT_ONCE, len(ordered))
