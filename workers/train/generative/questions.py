"""Comparisons and what their annotators wrote, as questions to a judge that writes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workers.models.generative.verdicts import VerdictPrompt, VerdictRenderer
from workers.schema import CommentRecord, FeedbackRecord, PreferenceRecord, ScoreRecord, Trajectory
from workers.schema.conditions import opposite
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison. reasons: what its annotator wrote of the better run and of the other, "" for nothing. by: the
    principle it was made by, in words; None: overall, or the renderer's criterion."""

    better: Trajectory
    other: Trajectory
    reasons: tuple[str, str]
    weight: float
    smoothing: float
    by: str | None = None

    @property
    def has_reasons(self) -> bool:
        return any(self.reasons)

    @property
    def opposite(self) -> "Pair | None":
        """By the opposite of its principle, where it has one, the other run is the better. What its annotator wrote
        argues for her own choice, so it gives no reasons."""
        if self.by is None:
            return None
        return replace(self, better=self.other, other=self.better, reasons=("", ""), by=opposite(self.by))


@dataclass(frozen=True, slots=True)
class Question:
    """A pair as it is asked. pair: with the better run as A, and as B. runs: the better one, and the other.

    reasons: token ids, of `pair` and of `runs`, in their order. opposite: the same by the opposite of its principle.
    """

    of: Pair
    pair: tuple[VerdictPrompt, VerdictPrompt]
    runs: tuple[VerdictPrompt, VerdictPrompt]
    pair_reasons: tuple[list[int], list[int]]
    run_reasons: tuple[list[int], list[int]]
    opposite: "Question | None" = None

    @property
    def longest(self) -> int:
        return max(len(prompt.ids) for prompt in (*self.pair, *self.runs)) + max(map(len, self.pair_reasons))


def pairs_of(
    records: Iterable[FeedbackRecord], recipe: Recipe, principles: Mapping[str, Mapping[str, Any]] = {}
) -> tuple[list[Pair], dict[str, int]]:
    """What can be learnt from, and how many comparisons were left out, by reason. principles: see `principles_of`."""
    kept = list(records)
    said = comments_by_annotator(kept)
    pairs: list[Pair] = []
    skipped: dict[str, int] = defaultdict(int)
    for record in kept:
        if not isinstance(record, PreferenceRecord):
            continue
        if record.weight <= 0:
            skipped["of weight 0"] += 1
        elif record.criterion != recipe.criterion and record.criterion not in principles:
            name = f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"
            skipped[name] += 1
        elif record.choice not in ("a", "b"):
            skipped["that name no better side"] += 1
        elif record.a.content_hash == record.b.content_hash:
            skipped["of trajectories that read the same"] += 1
        else:
            known = principles.get(record.criterion or "")
            pairs.append(_pair(record, said, recipe, None if known is None else known["text"]))
    return pairs, dict(skipped)


def comments_by_annotator(records: Iterable[FeedbackRecord]) -> dict[tuple[str, str], list[str]]:
    """By annotator and content hash of the trajectory."""
    comments: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        if isinstance(record, CommentRecord):
            comments[record.annotator, record.trajectory.content_hash].append(record.text.strip())
    return comments


def principles_of(records: Iterable[FeedbackRecord]) -> dict[str, dict[str, Any]]:
    """By name, {text, scale} of the criteria of pairs: what a principle says, and on what scale its scores are.

    A criterion is defined where runs are scored by it; else its name has to say what it means.
    """
    kept = list(records)
    defined = {
        record.criterion: record.definition
        for record in kept
        if isinstance(record, ScoreRecord) and record.definition
    }
    names = dict.fromkeys(
        record.criterion
        for record in kept
        if isinstance(record, PreferenceRecord)
        and record.criterion
        and record.weight > 0
        and record.choice in ("a", "b")
    )
    return {
        name: {"text": f"{name}: {defined[name]}" if name in defined else name, "scale": [0.0, 1.0]}
        for name in names
        if name is not None
    }


def _pair(
    record: PreferenceRecord, said: dict[tuple[str, str], list[str]], recipe: Recipe, by: str | None
) -> Pair:
    better, other = (record.a, record.b) if record.choice == "a" else (record.b, record.a)
    known = record.strict_reliability if recipe.annotators == "given" else None
    return Pair(
        better=better,
        other=other,
        reasons=(
            " ".join(dict.fromkeys(said[record.annotator, better.content_hash])),
            " ".join(dict.fromkeys(said[record.annotator, other.content_hash])),
        ),
        weight=record.weight,
        smoothing=max(recipe.label_smoothing, min(1 - known, 0.49) if known is not None else 0.0),
        by=by,
    )


def questions_of(
    pairs: Iterable[Pair], renderer: VerdictRenderer, *, with_opposites: bool = False
) -> list[Question]:
    prompts: dict[tuple[str, str | None], VerdictPrompt] = {}

    def run(trajectory: Trajectory, by: str | None) -> VerdictPrompt:
        name = trajectory.content_hash, by
        if name not in prompts:
            prompts[name] = renderer.render(trajectory, by=by)
        return prompts[name]

    def question(pair: Pair, turned: Pair | None) -> Question:
        return Question(
            of=pair,
            pair=(
                renderer.pair(pair.better, pair.other, by=pair.by),
                renderer.pair(pair.other, pair.better, by=pair.by),
            ),
            runs=(run(pair.better, pair.by), run(pair.other, pair.by)),
            pair_reasons=(
                renderer.critique_ids(_both(*pair.reasons)),
                renderer.critique_ids(_both(*pair.reasons[::-1])),
            ),
            run_reasons=(renderer.critique_ids(pair.reasons[0]), renderer.critique_ids(pair.reasons[1])),
            opposite=None if turned is None else question(turned, None),
        )

    return [question(pair, pair.opposite if with_opposites else None) for pair in pairs]


def _both(a: str, b: str) -> str:
    return "\n".join(f"{name}: {text}" for name, text in (("A", a), ("B", b)) if text)


def pair_micro_batches(batch: Sequence[Question], tokens: int) -> Iterator[list[int]]:
    """Places of questions whose three lines go through the model together."""
    part: list[int] = []
    longest = 0
    for place in sorted(range(len(batch)), key=lambda index: batch[index].longest):
        longest = max(longest, batch[place].longest)
        if part and 3 * (len(part) + 1) * longest > tokens:
            yield part
            part, longest = [], batch[place].longest
        part.append(place)
    if part:
        yield part


def run_micro_batches(
    prompts: Sequence[VerdictPrompt], samples: int, tokens: int, critique: int
) -> Iterator[Sequence[VerdictPrompt]]:
    """Neighbours, in order, whose samples are written at once."""
    part: list[VerdictPrompt] = []
    for prompt in prompts:
        longest = max(len(each.ids) for each in (*part, prompt)) + critique
        if part and (len(part) + 1) * samples * longest > tokens:
            yield part
            part = []
        part.append(prompt)
    if part:
        yield part
