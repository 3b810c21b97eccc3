"""Preference records as pairs of rendered trajectories."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from workers.schema import FeedbackRecord, PreferenceRecord, Trajectory
from workers.text.chunks import ChunkRenderer, Rendered


@dataclass(frozen=True, slots=True)
class Pair:
    """a, b: places in `Pairs.rendered`. reliability: of the annotator, 1 where it is not known."""

    record: PreferenceRecord
    a: int
    b: int

    @property
    def name(self) -> str:
        """How messages call it."""
        a, b = (one.id or one.content_hash[:12] for one in (self.record.a, self.record.b))
        return f"{self.record.item or self.record.a.task.id}: {a} / {b}"


@dataclass(slots=True)
class Pairs:
    """Usable pairs with their distinct trajectories. skipped: how many records were not usable, by reason."""

    pairs: list[Pair] = field(default_factory=list)
    rendered: list[Rendered] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    def count(self, *choices: str) -> int:
        return sum(pair.record.choice in choices for pair in self.pairs)


def collect_pairs(
    records: Iterable[FeedbackRecord], renderer: ChunkRenderer, *, criterion: str | None = None
) -> Pairs:
    """The preference records by `criterion`, without those that can teach nothing."""
    out, places, seen = Pairs(), dict[bytes, int](), dict[str, int]()

    def place(trajectory: Trajectory) -> int:
        key = trajectory.content_hash
        if key not in seen:
            one = renderer.render(trajectory)
            if one.key not in places:
                places[one.key] = len(out.rendered)
                out.rendered.append(one)
            seen[key] = places[one.key]
        return seen[key]

    for record in records:
        if not isinstance(record, PreferenceRecord):
            continue
        reason = None
        if record.criterion != criterion:
            reason = f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"
        elif record.weight <= 0:
            reason = "of weight 0"
        else:
            pair = Pair(record, place(record.a), place(record.b))
            if pair.a == pair.b:
                reason = "of two trajectories that read the same"
        if reason is None:
            out.pairs.append(pair)
        else:
            out.skipped[reason] = out.skipped.get(reason, 0) + 1
    return out
