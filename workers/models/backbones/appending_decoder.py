"""A decoder that is read at certain tokens, put after each agent step for that reading only."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from workers.models.backbones.decoder import Decoder
from workers.models.cache.session_cache import SessionSpace
from workers.models.states import States, join
from workers.text import ConversationRenderer, Tokens, WholeConversationRenderer


class AppendingDecoder(Decoder):
    """The appended tokens are no part of what follows, so every place that is read ends a sequence of a shared tree."""

    @property
    def grows(self) -> bool:
        """What is read is no beginning of what comes next."""
        return False

    def states(self, batch: Sequence[Tokens], *, cache: SessionSpace | None = None) -> States:
        """cache: not used."""
        prefixes = [self._prefixes(item) for item in batch]
        rows = iter(
            [steps[0] for _, steps in super().states([each for some in prefixes for each in some]).split()]
        )
        parts = []
        for item in batch:
            steps = [next(rows) for _ in item.places]
            first = steps[0].new_zeros(self.width) if item.start is None else steps.pop(0)
            parts.append((first, torch.stack(steps)))
        return join(parts, [0] * len(batch))

    def cost(self, batch: Sequence[Tokens]) -> int:
        return super().cost([prefix for item in batch for prefix in self._prefixes(item)])

    def work(self, batch: Sequence[Tokens]) -> float:
        return super().work([prefix for item in batch for prefix in self._prefixes(item)])

    def _prefixes(self, item: Tokens) -> list[Tokens]:
        """The ids up to each place that is read, with the appended ones."""
        tail = _appended(self.renderer)
        return [_read_at_end((*item.ids[: place + 1], *tail), item) for place in item.places]


def _appended(renderer: ConversationRenderer) -> tuple[int, ...]:
    return renderer.rule.appended if isinstance(renderer, WholeConversationRenderer) else ()


def _read_at_end(ids: tuple[int, ...], item: Tokens) -> Tokens:
    return replace(item, ids=ids, reads=(len(ids) - 1,), start=None, session=None)
