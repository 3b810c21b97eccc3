"""Stored trajectories side by side, as cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from apps.trajectories.alignment import AlignedRow, Alignment, align_trajectories
from apps.trajectories.card_rendering import StepCard
from apps.trajectories.selectors import load_trajectories
from apps.trajectories.step_cards import step_cards


@dataclass(frozen=True, slots=True)
class CardRow:
    """number: of the row. cards: None where a trajectory has no step."""

    number: int
    differs: bool
    cards: list[StepCard | None]


@lru_cache(maxsize=256)  # stored trajectories never change, and an alignment is a few numbers
def align_stored(keys: tuple[int, ...]) -> Alignment:
    found = load_trajectories(keys)
    return align_trajectories(*(found[key].steps for key in keys))


def card_rows(alignment: Alignment, keys: Sequence[int], start: int, stop: int) -> list[CardRow]:
    """The rows from `start` up to `stop`; two versions of a step have their different words marked."""
    wanted = alignment.rows[start:stop]
    cards = [_cards(key, side, wanted) for side, key in enumerate(keys)]
    return [
        CardRow(start + place, row.differs and len(keys) > 1, _cards_with_differences(row, cards))
        for place, row in enumerate(wanted)
    ]


def _cards(key: int, side: int, rows: Sequence[AlignedRow]) -> dict[int | None, StepCard]:
    indices = [at for row in rows if (at := row.cells[side]) is not None]
    if not indices:
        return {}
    return {card.index: card for card in step_cards(key, min(indices), max(indices) + 1)}


def _cards_with_differences(
    row: AlignedRow, cards: Sequence[dict[int | None, StepCard]]
) -> list[StepCard | None]:
    found = [by_index.get(at) for by_index, at in zip(cards, row.cells, strict=True)]
    if row.changed and len(found) == 2 and found[0] and found[1]:
        return [found[0].with_differences(found[1]), found[1].with_differences(found[0])]
    return found
