"""What each message of an agent shares with the text before it: the context's, and its own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.text.grounding import Array, count_grams
from workers.text.phrases import STOP_WORDS
from workers.text.short_overlap import CONTENT_WORDS, ShortOverlap

NAMES = (
    *("words_own", "bigrams_own", "trigrams_own", "trigrams_within", "arguments_known"),
    *("words_given", "bigrams_given", "trigrams_given", "content_given"),
    *("sentence_max", "sentence_min", "sentence_mean", "sentences_given", "sentences_new"),
    *("numbers_new", "numbers_given", "names_new", "names_given", "context_covered", "heard_used"),
)
COUNTED = frozenset(
    {"numbers_new", "numbers_given", "names_new", "names_given"}
)  # the others are shares, 0..1
_SIZES = {"words": 1, "bigrams": 2, "trigrams": 3}
# A word, of which a number keeps its decimals; or an end of a sentence.
_TOKEN = re.compile(r"\w+(?:[.,]\d+)*|[.!?\n]")
_ENDS = frozenset(".!?\n")
MOST_SHORT_WORDS = 3000  # beyond, arrays are as fast as sets, and take a third of their memory
Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]


@dataclass(slots=True)
class MessageWords:
    """A message as numbers of words.

    sentences: the sentence of each word. names: it has a capital, and does not begin a sentence.
    characters: of all words. capitals, digits: how many words of two letters or more
    have no small letter; how many words begin with a digit.
    """

    ids: list[int] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    names: list[bool] = field(default_factory=list)
    characters: int = 0
    capitals: int = 0
    digits: int = 0


@dataclass(frozen=True, slots=True)
class _AgentStep:
    """message, arguments: their places among the chunks. heard: of the chunk of others that came last before."""

    words: MessageWords
    message: int
    arguments: int
    heard: int | None


class Overlap:
    """Reads a trajectory's texts in order; `features` has the numbers of all agent steps.

    A chunk is one text that was read. Given are the words that others wrote (task, users, tools) before a message.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._chunks: list[Sequence[int]] = []
        self._own: list[bool] = []
        self._steps: list[_AgentStep] = []
        self._heard: int | None = None

    def read_given(self, text: str) -> int:
        """Text that someone else wrote. Returns the number of its words."""
        self._heard = self._add(self._read_ids(text), own=False)
        return len(self._chunks[-1])

    def read_agent(self, message: str, arguments: Sequence[str]) -> MessageWords:
        words, heard = self._read_message(message), self._heard
        place = self._add(words.ids, own=True)
        called = self._add(list(chain.from_iterable(map(self._read_ids, arguments))), own=True)
        self._steps.append(_AgentStep(words, place, called, heard))
        return words

    def features(self) -> dict[str, Floats]:
        """By name, [agent steps]: all of NAMES."""
        if sum(map(len, self._chunks)) <= MOST_SHORT_WORDS:
            rows = self._short_rows()
            return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in NAMES}
        return self._long_features()

    def _short_rows(self) -> list[dict[str, float]]:
        short, chunks = ShortOverlap(self._numbers), self._chunks
        steps = {step.message: step for step in self._steps}
        for place, (chunk, own) in enumerate(zip(chunks, self._own, strict=True)):
            if not own:
                short.read_given(chunk)
            elif (step := steps.get(place)) is not None:  # its arguments come next
                heard = () if step.heard is None else chunks[step.heard]
                short.read_agent(step.words, chunks[step.arguments], heard)
        return short.rows

    def _long_features(self) -> dict[str, Floats]:
        steps = self._steps
        messages, arguments = (
            np.array([getattr(step, part) for step in steps], dtype=np.int64)
            for part in ("message", "arguments")
        )
        lengths = np.array([len(step.words.ids) for step in steps], dtype=np.int64)
        place = np.repeat(np.arange(len(self._chunks)), [len(chunk) for chunk in self._chunks])
        ids = np.fromiter(chain.from_iterable(self._chunks), np.int64, len(place))
        own = np.array(self._own, dtype=bool)
        found: dict[str, Floats] = {}
        for name, size in _SIZES.items():
            grams = count_grams(ids, place, own, size)
            counts = grams.counts[messages]
            found[f"{name}_given"] = _shares(grams.before_given[messages], counts)
            found[f"{name}_own"] = _shares(grams.before_own[messages], counts)
        found["trigrams_within"] = np.where(lengths > 2, 1 - _shares(counts, lengths - 2), 0.0)
        words = _Words(
            given=_first_chunks(ids, place, ~own, len(self._numbers)),
            said=_first_chunks(ids, place, own, len(self._numbers)),
            is_content=np.array([word not in STOP_WORDS for word in self._numbers], dtype=bool),
            is_number=np.array([word[0].isdigit() for word in self._numbers], dtype=bool),
        )
        distinct = _DistinctWords(ids, place, len(own), len(self._numbers))
        first = np.minimum(words.given, words.said)[distinct.ids]
        known = distinct.count(first < distinct.chunks)
        found["arguments_known"] = _shares(known[arguments], distinct.counts[arguments])
        own_words = _OwnWords(
            ids=np.fromiter(chain.from_iterable(step.words.ids for step in steps), np.int64),
            sentences=np.fromiter(chain.from_iterable(step.words.sentences for step in steps), np.int64),
            names=np.fromiter(chain.from_iterable(step.words.names for step in steps), bool),
            lengths=lengths,
            messages=messages,
        )
        found |= _sentence_shares(own_words, words) | _facts(own_words, words)
        is_new = words.is_content & (words.given < words.said)
        begun = np.cumsum(np.bincount(words.given[words.is_content], minlength=len(own) + 1))
        news = distinct.count(is_new[distinct.ids] & (words.said[distinct.ids] == distinct.chunks))
        found["context_covered"] = np.where(lengths > 0, _shares(news[messages], begun[messages]), 0.0)
        heard = [-1 if step.heard is None or not step.words.ids else step.heard for step in steps]
        found["heard_used"] = _shares_used(heard, messages, distinct, words.is_content)
        return found

    def _add(self, ids: Sequence[int], *, own: bool) -> int:
        self._chunks.append(ids)
        self._own.append(own)
        return len(self._chunks) - 1

    def _read_ids(self, text: str) -> list[int]:
        numbers = self._numbers
        words = (token.lower() for token in _TOKEN.findall(text) if token not in _ENDS)
        return [numbers.setdefault(word, len(numbers)) for word in words]

    def _read_message(self, text: str) -> MessageWords:
        numbers, ids, sentences, names = self._numbers, list[int](), list[int](), list[bool]()
        characters = capitals = digits = sentence = 0
        began = False
        for token in _TOKEN.findall(text):
            if token in _ENDS:
                sentence += began
                began = False
                continue
            lower = token.lower()
            ids.append(numbers.setdefault(lower, len(numbers)))
            sentences.append(sentence)
            characters += len(token)
            digits += token[0].isdigit()
            if lower == token and token.isascii():
                names.append(False)
            else:
                names.append(began and token[0].isupper())
                capitals += len(token) > 1 and token.isupper()
            began = True
        return MessageWords(ids, sentences, names, characters, capitals, digits)


@dataclass(frozen=True, slots=True)
class _Words:
    """[words] of a trajectory. given, said: the first chunk of others, and of the agent, that has each; the number of
    chunks where none has."""

    given: Array
    said: Array
    is_content: _Flags
    is_number: _Flags


class _DistinctWords:
    """chunks, ids: the distinct words of each chunk, ascending. counts: [chunks], how many each has."""

    def __init__(self, ids: Array, place: Array, chunks: int, words: int) -> None:
        found = np.unique(place * words + ids)
        self.chunks, self.ids = np.divmod(found, max(1, words))
        self.counts = np.bincount(self.chunks, minlength=chunks)

    def count(self, chosen: _Flags) -> Array:
        """[chunks]: how many of the words of each are chosen."""
        return np.bincount(self.chunks[chosen], minlength=len(self.counts))


@dataclass(frozen=True, slots=True)
class _OwnWords:
    """[words of all messages]: ids, sentences within the message, names. lengths, messages: [agent steps], how many
    words each has, and its chunk."""

    ids: Array
    sentences: Array
    names: _Flags
    lengths: Array
    messages: Array

    @property
    def steps(self) -> Array:
        """[words of all messages]: the agent step of each."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def known(self, words: _Words) -> _Flags:
        """Whether each was given before its message."""
        return words.given[self.ids] < np.repeat(self.messages, self.lengths)


def share(part: float, total: float) -> float:
    return float(part / total) if total > 0 else 0.0


def _first_chunks(ids: Array, place: Array, chosen: _Flags, words: int) -> Array:
    """[words]: the first chosen chunk that has each; the number of chunks where none has."""
    out = np.full(words, len(chosen), dtype=np.int64)
    where = chosen[place]
    out[ids[where][::-1]] = place[where][::-1]  # of assignments to one place the last one holds
    return out


def _shares(part: NDArray[Any], total: NDArray[Any]) -> Floats:
    """part / total, elementwise; 0 where total is 0 or less."""
    return np.where(total > 0, part, 0) / np.where(total > 0, total, 1)


def _sentence_shares(own: _OwnWords, words: _Words) -> dict[str, Floats]:
    """The share of given words among the content words; of the message, and over its sentences."""
    many, steps, content = len(own.lengths), own.steps, words.is_content[own.ids]
    known = content & own.known(words)
    found = {
        "content_given": _shares(*(np.bincount(steps[some], minlength=many) for some in (known, content)))
    }
    widest = int(own.sentences.max(initial=0)) + 1
    sentences, sentence = np.unique(steps * widest + own.sentences, return_inverse=True)
    total, given = (np.bincount(sentence[some], minlength=len(sentences)) for some in (content, known))
    is_long = total >= CONTENT_WORDS
    shares, owners = given[is_long] / total[is_long], sentences[is_long] // widest
    counts = np.bincount(owners, minlength=many)
    highest, lowest = np.zeros(many), np.ones(many)
    np.maximum.at(highest, owners, shares)
    np.minimum.at(lowest, owners, shares)
    return found | {
        "sentence_max": highest,
        "sentence_min": np.where(counts > 0, lowest, 0.0),
        "sentence_mean": _shares(np.bincount(owners, shares, many), counts),
        "sentences_given": _shares(np.bincount(owners[shares == 1], minlength=many), counts),
        "sentences_new": _shares(np.bincount(owners[shares < 0.5], minlength=many), counts),
    }


def _facts(own: _OwnWords, words: _Words) -> dict[str, Floats]:
    """How many distinct numbers and names were given, and how many were not."""
    many, numbers, known = len(own.lengths), words.is_number[own.ids], own.known(words)
    found: dict[str, Floats] = {}
    keys = own.steps * len(words.given) + own.ids
    for name, kind in (("numbers", numbers), ("names", own.names & ~numbers)):
        for suffix, which in (("given", known), ("new", ~known)):
            distinct = np.unique(keys[kind & which]) // max(1, len(words.given))
            found[f"{name}_{suffix}"] = np.bincount(distinct, minlength=many).astype(np.float64)
    return found


def _shares_used(
    heard: Sequence[int], messages: Array, distinct: _DistinctWords, is_content: _Flags
) -> Floats:
    """[agent steps]: the share of the content words of the chunk `heard` that are in the message; 0 for -1."""
    ends = np.cumsum(distinct.counts)
    found = np.zeros(len(heard))
    for step, (chunk, message) in enumerate(zip(heard, messages.tolist(), strict=True)):
        if chunk < 0:
            continue
        asked, own = (
            distinct.ids[ends[which] - distinct.counts[which] : ends[which]] for which in (chunk, message)
        )
        asked = asked[is_content[asked]]
        if len(asked):
            found[step] = np.isin(asked, own, assume_unique=True, kind="sort").sum() / len(asked)
    return found
