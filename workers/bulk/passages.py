"""Passages of the trajectories of a chunk, embedded by the embedded encoder for semantic search."""

from collections.abc import Sequence
from itertools import islice

from workers.bulk.scoring import ReadChunk
from workers.device import choose_device
from workers.induce.embedding import Embedder
from workers.schema import Trajectory
from workers.schema.bulk_items import BulkItem, EmbeddedPassage
from workers.schema.passages import Passage, split_passages

_DIGITS = 4  # of a coordinate in a message: 5e-5 of a unit vector


class PassageWork:
    """device: as torch names it, or `auto`. Raises RewardError where the encoder cannot be loaded."""

    def __init__(self, device: str = "auto") -> None:
        self._embed = Embedder(device=str(choose_device(device)))

    def read(self, trajectories: Sequence[Trajectory]) -> ReadChunk:
        rendered = [(place, split_passages(found)) for place, found in enumerate(trajectories)]
        return ReadChunk([int(found.id or 0) for found in trajectories], rendered, {})

    def compute(self, chunk: ReadChunk) -> list[BulkItem]:
        passages: list[list[Passage]] = [found for _, found in chunk.rendered]
        rows = iter(self._embed([passage.text for found in passages for passage in found]).tolist())
        return [
            BulkItem(
                trajectory=key,
                passages=[
                    EmbeddedPassage(passage.first, passage.last, [round(number, _DIGITS) for number in row])
                    for passage, row in zip(found, islice(rows, len(found)), strict=True)
                ],
            )
            for key, found in zip(chunk.ids, passages, strict=True)
        ]
