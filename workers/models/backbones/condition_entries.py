"""What a step has to do with the conditions of its trajectory, as entries of a linear model's features.

What all runs share (the condition alone) moves no comparison, so every feature is of the step and the condition
together: the words they share, crossed with the words of the condition, and what is learnt of one condition by its
whole text. A condition that says "not" turns the sign of all of these, for texts too that were never seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.models.backbones.step_entries import FIRST_EMBEDDING, STRUCTURE_SCALE, Entries, Floats
from workers.schema.conditions import CONDITIONS, Condition, split_opposite
from workers.text import StepTexts
from workers.text.negations import TURNABLE, is_turned
from workers.text.ngrams import COLUMNS, word_columns, words

FIRST_CONDITION = FIRST_EMBEDDING + 16_384  # after the embeddings of any encoder
CONDITIONED_WIDTH = FIRST_CONDITION + COLUMNS
_MOST_WORDS = 24  # of a condition, that are crossed with the structure of a step
_FACTS = ("said", "shared", "seen", "quoted", "told_numbers", "other_numbers")
_FACTS_SCALE, _CROSSED_LENGTH, _STRUCTURE_LENGTH, _WORDS_LENGTH = 1.0, 1.0, 0.5, 0.5
_MULTIPLIER = 0x9E3779B97F4A7C15
_Cells = list[tuple[NDArray[np.int64], Floats]]


@dataclass(frozen=True, slots=True)
class _Stated:
    """A condition: its place in CONDITIONS, its distinct words (columns), and its numbers. sign: -1 of one that says
    what is not wanted."""

    place: int
    sign: float
    text: str
    words: NDArray[np.int64]
    whole: int
    numbers: frozenset[str]


def condition_entries(item: StepTexts) -> Entries:
    """Of each step of an item, ascending columns from FIRST_CONDITION; none of an item without conditions."""
    stated = [_stated(name, text) for name, text in item.conditions]
    said = [np.empty(0, np.int64) for _ in stated]
    rows: list[tuple[NDArray[np.int64], Floats]] = []
    for place, (text, observation) in enumerate(zip(item.agent_texts, item.observations, strict=True)):
        cells: _Cells = []
        for index, condition in enumerate(stated):
            facts, said[index] = _facts(condition, text, observation, said[index])
            cells += _cells(condition, facts, text, np.asarray(item.structure[place], dtype=np.float64))
        rows.append(_joined(cells))
    return Entries(
        np.concatenate([columns for columns, _ in rows]).astype(np.int32),
        np.concatenate([values for _, values in rows]).astype(np.float32),
        np.array([len(columns) for columns, _ in rows], dtype=np.int64),
    )


def _stated(name: Condition, text: str) -> _Stated:
    sign = -1.0 if is_turned(name, text) else 1.0
    text, _ = split_opposite(text)
    columns, _ = words(text)
    singles = np.unique(word_columns(text)[0])
    whole = int(columns.sum() * 31 + len(columns)) & 0x7FFFFFFF
    return _Stated(
        CONDITIONS.index(name), sign, " ".join(text.lower().split()), singles, whole, _numbers(text)
    )


def _facts(
    condition: _Stated, text: str, observation: str, said: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    """[FACTS] in 0..1: of the condition's words those that this step is the first to say, of the step's words those of
    the condition, of the condition's words those in what the step got back, whether the step quotes all of it, of its
    numbers those that are told, whether others are. And the words of the condition that were said so far."""
    own, seen = np.unique(word_columns(text)[0]), np.unique(word_columns(observation)[0])
    many = max(1, len(condition.words))
    shared = np.intersect1d(own, condition.words, assume_unique=True)
    new = np.setdiff1d(shared, said, assume_unique=True)
    found = _numbers(text)
    facts = np.array(
        [
            len(new) / many,
            len(shared) / max(1, len(own)),
            len(np.intersect1d(seen, condition.words, assume_unique=True)) / many,
            float(bool(condition.text) and condition.text in " ".join(text.lower().split())),
            len(found & condition.numbers) / max(1, len(condition.numbers)),
            float(bool(condition.numbers) and bool(found - condition.numbers)),
        ]
    )
    return facts, np.union1d(said, shared)


def _cells(condition: _Stated, facts: Floats, text: str, structure: Floats) -> _Cells:
    base = condition.place + 1
    places = np.flatnonzero(facts)
    found: _Cells = [(_hashed(places, base), facts[places] * _FACTS_SCALE)]
    if CONDITIONS[condition.place] not in TURNABLE:
        return found
    found.append((_hashed(places, base + 32), facts[places] * _FACTS_SCALE * condition.sign))
    kept = condition.words[:_MOST_WORDS]
    spread = 1 / np.sqrt(max(1, len(kept)))
    crossed = np.add.outer(places * COLUMNS, kept).ravel()
    found.append(
        (
            _hashed(crossed, base + 8),
            np.repeat(facts[places], len(kept)) * _CROSSED_LENGTH * spread * condition.sign,
        )
    )
    filled = np.flatnonzero(structure)
    crossed = np.add.outer(filled * COLUMNS, kept).ravel()
    values = (
        np.repeat(structure[filled], len(kept))
        * _STRUCTURE_LENGTH
        * STRUCTURE_SCALE
        * spread
        * condition.sign
    )
    found.append((_hashed(crossed, base + 16), values))
    columns, counts = words(text)
    if len(columns):
        weights = np.log1p(counts)
        found.append(
            (
                _hashed(columns + condition.whole * COLUMNS, base + 24),
                weights * (condition.sign * _WORDS_LENGTH / np.sqrt(weights @ weights)),
            )
        )
    return found


def _joined(cells: _Cells) -> tuple[NDArray[np.int64], Floats]:
    """Columns once each, ascending, with the sums of their values."""
    if not cells:
        return np.empty(0, np.int64), np.empty(0)
    columns, rows = np.unique(np.concatenate([found for found, _ in cells]), return_inverse=True)
    values = np.bincount(rows, np.concatenate([values for _, values in cells]), len(columns))
    return columns.astype(np.int64) + FIRST_CONDITION, values.astype(np.float64)


def _hashed(codes: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014), as for n-grams."""
    mixed = codes.astype(np.uint64) + np.uint64(salt * _MULTIPLIER % 2**64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ mixed >> np.uint64(31)
    return (mixed & np.uint64(COLUMNS - 1)).astype(np.int64)


def _numbers(text: str) -> frozenset[str]:
    """As they are written, without signs and trailing zeros: 7.50 is 7.5."""
    found = set()
    for word in text.replace(",", "").split():
        digits = word.strip("$€£%.:;()[]{}\"'`*+-=")
        if digits and digits.replace(".", "", 1).isdigit():
            found.add(f"{float(digits):g}")
    return frozenset(found)


def joined_entries(items: Sequence[StepTexts], entries: Entries) -> Entries:
    """The entries of the steps of these items, each followed by those of its conditions."""
    if not any(item.conditions for item in items):
        return entries
    more = Entries.join([condition_entries(item) for item in items])
    lengths = entries.lengths + more.lengths
    is_more = np.zeros(int(lengths.sum()), dtype=bool)
    ends = lengths.cumsum()
    starts = np.repeat(ends - more.lengths, more.lengths)
    within = np.arange(int(more.lengths.sum())) - np.repeat(
        more.lengths.cumsum() - more.lengths, more.lengths
    )
    is_more[starts + within] = True
    columns, values = np.empty(len(is_more), np.int32), np.empty(len(is_more), np.float32)
    columns[is_more], values[is_more] = more.columns, more.values
    columns[~is_more], values[~is_more] = entries.columns, entries.values
    return Entries(columns, values, lengths)
