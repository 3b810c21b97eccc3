"""Stored trajectories side by side, as cards."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from django.db.models import Q

from apps.trajectories.alignment import AlignedRow, Alignment, align_trajectories
from apps.trajectories.card_rendering import StepCard
from apps.trajectories.models import Step
from apps.trajectories.serialization import to_step
from apps.trajectories.step_cards import render_step_cards


@dataclass(frozen=True, slots=True)
class CardRow:
    """number: of the row. cards: None where a trajectory has no step."""

    number: int
    differs: bool
    cards: list[StepCard | None]


@dataclass(frozen=True, slots=True)
class StoredSides:
    """Aligned trajectories by their keys. steps: all steps by key, where aligning has just read them."""

    keys: tuple[int, ...]
    alignment: Alignment
    steps: dict[int, list[Step]] | None = None


# Stored trajectories never change, and an alignment is a few numbers.
_alignments: OrderedDict[tuple[int, ...], Alignment] = OrderedDict()
_alignments_lock = Lock()
_MAX_ALIGNMENTS = 256


def align_stored(keys: tuple[int, ...]) -> StoredSides:
    with _alignments_lock:
        if (alignment := _alignments.get(keys)) is not None:
            _alignments.move_to_end(keys)
            return StoredSides(keys, alignment)
    rows: dict[int, list[Step]] = {key: [] for key in keys}
    for row in Step.objects.filter(trajectory__in=keys).order_by("trajectory_id", "index"):
        rows[row.trajectory_id].append(row)
    alignment = align_trajectories(*([to_step(row) for row in rows[key]] for key in keys))
    with _alignments_lock:
        _alignments[keys] = alignment
        while len(_alignments) > _MAX_ALIGNMENTS:
            _alignments.popitem(last=False)
    return StoredSides(keys, alignment, rows)


def card_rows(sides: StoredSides, start: int, stop: int) -> list[CardRow]:
    """The rows from `start` up to `stop`; two versions of a step have their different words marked."""
    keys, wanted = sides.keys, sides.alignment.rows[start:stop]
    cards = _cards(sides, wanted)
    return [
        CardRow(start + place, row.differs and len(keys) > 1, _cards_with_differences(row, cards))
        for place, row in enumerate(wanted)
    ]


def _cards(sides: StoredSides, rows: Sequence[AlignedRow]) -> list[dict[int | None, StepCard]]:
    """Cards of each side by index of the step; and of the step after the last, which acts on it."""
    ranges: dict[int, tuple[int, int]] = {}
    for side, key in enumerate(sides.keys):
        if indices := [at for row in rows if (at := row.cells[side]) is not None]:
            first, last = ranges.get(key, (min(indices), 0))
            ranges[key] = (min(first, *indices), max(last, max(indices) + 1))
    steps = _steps_in(sides, ranges)
    return [{card.index: card for card in render_step_cards(key, steps[key])} for key in sides.keys]


def _steps_in(sides: StoredSides, ranges: dict[int, tuple[int, int]]) -> dict[int, list[Step]]:
    """Steps of each trajectory with an index in its range, in at most one query. ranges: first and last index."""
    if sides.steps is not None:
        return {
            key: [step for step in rows if key in ranges and ranges[key][0] <= step.index <= ranges[key][1]]
            for key, rows in sides.steps.items()
        }
    found: dict[int, list[Step]] = {key: [] for key in sides.keys}
    if not ranges:
        return found
    wanted = Q()
    for key, bounds in ranges.items():
        wanted |= Q(trajectory=key, index__range=bounds)
    for step in Step.objects.filter(wanted).order_by("trajectory_id", "index"):
        found[step.trajectory_id].append(step)
    return found


def _cards_with_differences(
    row: AlignedRow, cards: Sequence[dict[int | None, StepCard]]
) -> list[StepCard | None]:
    found = [by_index.get(at) for by_index, at in zip(cards, row.cells, strict=True)]
    if row.changed and len(found) == 2 and found[0] and found[1]:
        return [found[0].with_differences(found[1]), found[1].with_differences(found[0])]
    return found
