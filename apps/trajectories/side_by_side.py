"""Stored trajectories side by side, as cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Q

from apps.trajectories.alignment import AlignedRow, Alignment, align_trajectories
from apps.trajectories.card_rendering import StepCard
from apps.trajectories.models import Step
from apps.trajectories.serialization import to_step
from apps.trajectories.step_cards import render_step_cards
from workers import schema


@dataclass(frozen=True, slots=True)
class CardRow:
    """number: of the row. cards: None where a trajectory has no step."""

    number: int
    differs: bool
    cards: list[StepCard | None]


@lru_cache(maxsize=256)  # stored trajectories never change, and an alignment is a few numbers
def align_stored(keys: tuple[int, ...]) -> Alignment:
    steps: dict[int, list[schema.Step]] = {key: [] for key in keys}
    for row in Step.objects.filter(trajectory__in=keys).order_by("trajectory_id", "index"):
        steps[row.trajectory_id].append(to_step(row))
    return align_trajectories(*(steps[key] for key in keys))


def card_rows(alignment: Alignment, keys: Sequence[int], start: int, stop: int) -> list[CardRow]:
    """The rows from `start` up to `stop`; two versions of a step have their different words marked."""
    wanted = alignment.rows[start:stop]
    cards = _cards(keys, wanted)
    return [
        CardRow(start + place, row.differs and len(keys) > 1, _cards_with_differences(row, cards))
        for place, row in enumerate(wanted)
    ]


def _cards(keys: Sequence[int], rows: Sequence[AlignedRow]) -> list[dict[int | None, StepCard]]:
    """Cards of each side by index of the step, in one query; and of the step after the last, which acts on it."""
    wanted = Q(pk=None)
    for side, key in enumerate(keys):
        if indices := [at for row in rows if (at := row.cells[side]) is not None]:
            wanted |= Q(trajectory=key, index__range=(min(indices), max(indices) + 1))
    steps: dict[int, list[Step]] = {key: [] for key in keys}
    for step in Step.objects.filter(wanted).order_by("trajectory_id", "index"):
        steps[step.trajectory_id].append(step)
    return [{card.index: card for card in render_step_cards(key, steps[key])} for key in keys]


def _cards_with_differences(
    row: AlignedRow, cards: Sequence[dict[int | None, StepCard]]
) -> list[StepCard | None]:
    found = [by_index.get(at) for by_index, at in zip(cards, row.cells, strict=True)]
    if row.changed and len(found) == 2 and found[0] and found[1]:
        return [found[0].with_differences(found[1]), found[1].with_differences(found[0])]
    return found
