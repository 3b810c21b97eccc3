"""Comparisons and what their annotators wrote, as questions to a judge that writes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workers.judge.verdicts import Asked, VerdictRenderer
from workers.schema import CommentRecord, FeedbackRecord, PreferenceRecord, Trajectory
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison. reasons: what its annotator wrote of the better run and of the other, "" for nothing."""

    better: Trajectory
    other: Trajectory
    reasons: tuple[str, str]
    weight: float
    smoothing: float

    @property
    def has_reasons(self) -> bool:
        return any(self.reasons)


@dataclass(frozen=True, slots=True)
class Question:
    """A pair as it is asked. pair: with the better run as A, and as B. runs: the better one, and the other.

    reasons: token ids, of `pair` and of `runs`, in their order.
    """

    of: Pair
    pair: tuple[Asked, Asked]
    runs: tuple[Asked, Asked]
    pair_reasons: tuple[list[int], list[int]]
    run_reasons: tuple[list[int], list[int]]

    @property
    def longest(self) -> int:
        return max(len(one.ids) for one in (*self.pair, *self.runs)) + max(map(len, self.pair_reasons))


def pairs_of(records: Iterable[FeedbackRecord], recipe: Recipe) -> tuple[list[Pair], dict[str, int]]:
    """What can be learnt from, and how many comparisons were left out, by reason."""
    kept = list(records)
    said: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in kept:
        if isinstance(record, CommentRecord):
            said[record.annotator, record.trajectory.content_hash].append(record.text.strip())
    pairs: list[Pair] = []
    skipped: dict[str, int] = defaultdict(int)
    for record in kept:
        if not isinstance(record, PreferenceRecord):
            continue
        if record.weight <= 0:
            skipped["of weight 0"] += 1
        elif record.criterion != recipe.criterion:
            name = f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"
            skipped[name] += 1
        elif record.choice not in ("a", "b"):
            skipped["that name no better side"] += 1
        elif record.a.content_hash == record.b.content_hash:
            skipped["of trajectories that read the same"] += 1
        else:
            pairs.append(_pair(record, said, recipe))
    return pairs, dict(skipped)


def _pair(record: PreferenceRecord, said: dict[tuple[str, str], list[str]], recipe: Recipe) -> Pair:
    better, other = (record.a, record.b) if record.choice == "a" else (record.b, record.a)
    known = record.reliability if recipe.annotators == "given" else None
    return Pair(
        better=better,
        other=other,
        reasons=(
            " ".join(dict.fromkeys(said[record.annotator, better.content_hash])),
            " ".join(dict.fromkeys(said[record.annotator, other.content_hash])),
        ),
        weight=record.weight,
        smoothing=max(recipe.label_smoothing, min(1 - known, 0.49) if known is not None else 0.0),
    )


def questions_of(pairs: Iterable[Pair], renderer: VerdictRenderer) -> list[Question]:
    asked: dict[str, Asked] = {}

    def run(trajectory: Trajectory) -> Asked:
        name = trajectory.content_hash
        if name not in asked:
            asked[name] = renderer.render(trajectory)
        return asked[name]

    return [
        Question(
            of=one,
            pair=(renderer.pair(one.better, one.other), renderer.pair(one.other, one.better)),
            runs=(run(one.better), run(one.other)),
            pair_reasons=(
                renderer.critique_ids(_both(*one.reasons)),
                renderer.critique_ids(_both(*one.reasons[::-1])),
            ),
            run_reasons=(renderer.critique_ids(one.reasons[0]), renderer.critique_ids(one.reasons[1])),
        )
        for one in pairs
    ]


def _both(a: str, b: str) -> str:
    return "\n".join(f"{name}: {text}" for name, text in (("A", a), ("B", b)) if text)


def in_threes(batch: Sequence[Question], tokens: int) -> Iterator[list[int]]:
    """Places of questions whose three lines go through the model together."""
    part: list[int] = []
    longest = 0
    for place in sorted(range(len(batch)), key=lambda one: batch[one].longest):
        longest = max(longest, batch[place].longest)
        if part and 3 * (len(part) + 1) * longest > tokens:
            yield part
            part, longest = [], batch[place].longest
        part.append(place)
    if part:
        yield part


def in_runs(prompts: Sequence[Asked], samples: int, tokens: int, critique: int) -> Iterator[Sequence[Asked]]:
    """Neighbours, in order, whose samples are written at once."""
    part: list[Asked] = []
    for one in prompts:
        longest = max(len(each.ids) for each in (*part, one)) + critique
        if part and (len(part) + 1) * samples * longest > tokens:
            yield part
            part = []
        part.append(one)
    if part:
        yield part
