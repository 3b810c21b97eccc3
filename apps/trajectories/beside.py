"""Stored trajectories side by side, as cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from apps.trajectories.alignment import Alignment, Row, align
from apps.trajectories.cards import StepCard
from apps.trajectories.selectors import load_trajectories
from apps.trajectories.step_cards import step_cards


@dataclass(frozen=True, slots=True)
class CardRow:
    """number: of the row. cards: None where a run has nothing to put there."""

    number: int
    differs: bool
    cards: list[StepCard | None]


@lru_cache(maxsize=256)  # stored trajectories never change, and an alignment is a few numbers
def aligned(keys: tuple[int, ...]) -> Alignment:
    found = load_trajectories(keys)
    return align(*(found[key].steps for key in keys))


def rows_of(alignment: Alignment, keys: Sequence[int], start: int, stop: int) -> list[CardRow]:
    """The rows from `start` up to `stop`; of two versions of a step, with the words marked that the other lacks."""
    wanted = alignment.rows[start:stop]
    cards = [_cards(key, side, wanted) for side, key in enumerate(keys)]
    return [
        CardRow(start + place, row.differs and len(keys) > 1, _beside(row, cards))
        for place, row in enumerate(wanted)
    ]


def _cards(key: int, side: int, rows: Sequence[Row]) -> dict[int | None, StepCard]:
    indices = [at for row in rows if (at := row.cells[side]) is not None]
    if not indices:
        return {}
    return {card.index: card for card in step_cards(key, min(indices), max(indices) + 1)}


def _beside(row: Row, cards: Sequence[dict[int | None, StepCard]]) -> list[StepCard | None]:
    found = [by_index.get(at) for by_index, at in zip(cards, row.cells, strict=True)]
    if row.changed and len(found) == 2 and found[0] and found[1]:
        return [found[0].beside(found[1]), found[1].beside(found[0])]
    return found
