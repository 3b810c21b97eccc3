"""What each message of an agent shares with the text before it: the context's, and its own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from workers.text.grounding import Array, count_grams
from workers.text.phrases import STOP_WORDS

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
_CONTENT_WORDS = 2  # of a sentence that is looked at
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

    def features(self) -> list[dict[str, float]]:
        """By agent step, of NAMES those that are not 0."""
        place = np.repeat(np.arange(len(self._chunks)), [len(chunk) for chunk in self._chunks])
        ids = np.fromiter(chain.from_iterable(self._chunks), np.int64, len(place))
        own = np.array(self._own, dtype=bool)
        given, said = (_first_chunks(ids, place, who, len(self._numbers)) for who in (~own, own))
        content = np.array([word not in STOP_WORDS for word in self._numbers], dtype=bool)
        numeric = np.array([word[0].isdigit() for word in self._numbers], dtype=bool)
        begun = np.cumsum(np.bincount(given[content], minlength=len(own) + 1))
        rows: list[dict[str, float]] = [{} for _ in self._steps]
        for name, size in _SIZES.items():
            grams = count_grams(ids, place, own, size)
            for row, step in zip(rows, self._steps, strict=True):
                row[f"{name}_given"] = share(grams.before_given[step.message], grams.counts[step.message])
                row[f"{name}_own"] = share(grams.before_own[step.message], grams.counts[step.message])
                if size == 3 and (total := len(step.words.ids) - 2) > 0:
                    row["trigrams_within"] = 1 - share(grams.counts[step.message], total)
        for row, step in zip(rows, self._steps, strict=True):
            if called := self._chunks[step.arguments]:
                where = np.unique(called)
                row["arguments_known"] = float((np.minimum(given, said)[where] < step.arguments).mean())
            if not step.words.ids:
                continue
            mine, names = np.array(step.words.ids), np.array(step.words.names)
            known = given[mine] < step.message
            row |= _sentence_shares(np.array(step.words.sentences), known, content[mine])
            row |= _facts(mine, names, known, numeric[mine])
            new = np.unique(mine[content[mine] & known & (said[mine] == step.message)])
            row["context_covered"] = share(len(new), begun[step.message])
            if step.heard is not None:
                row["heard_used"] = _share_used(self._chunks[step.heard], mine, content)
        return rows

    def _add(self, ids: Sequence[int], *, own: bool) -> int:
        self._chunks.append(ids)
        self._own.append(own)
        return len(self._chunks) - 1

    def _read_ids(self, text: str) -> list[int]:
        numbers = self._numbers
        words = (token.lower() for token in _TOKEN.findall(text) if token not in _ENDS)
        return [numbers.setdefault(word, len(numbers)) for word in words]

    def _read_message(self, text: str) -> MessageWords:
        out, numbers = MessageWords(), self._numbers
        sentence, began = 0, False
        for token in _TOKEN.findall(text):
            if token in _ENDS:
                sentence, began = sentence + began, False
                continue
            out.ids.append(numbers.setdefault(token.lower(), len(numbers)))
            out.sentences.append(sentence)
            out.names.append(began and token[0].isupper())
            out.characters += len(token)
            out.digits += token[0].isdigit()
            out.capitals += len(token) > 1 and token.isupper()
            began = True
        return out


def share(part: float, total: float) -> float:
    return float(part / total) if total > 0 else 0.0


def _first_chunks(ids: Array, place: Array, chosen: _Flags, words: int) -> Array:
    """[words]: the first chosen chunk that has each; the number of chunks where none has."""
    out = np.full(words, len(chosen), dtype=np.int64)
    where = chosen[place]
    out[ids[where][::-1]] = place[where][::-1]  # of assignments to one place the last one holds
    return out


def _sentence_shares(sentences: Array, known: _Flags, content: _Flags) -> dict[str, float]:
    """The share of given words among the content words; of the message, and over its sentences."""
    total = np.bincount(sentences, weights=content)
    long = total >= _CONTENT_WORDS
    shares = np.bincount(sentences, weights=content & known)[long] / total[long]
    row = {"content_given": share((content & known).sum(), content.sum())}
    if len(shares):
        row["sentence_max"] = float(shares.max())
        row["sentence_min"] = float(shares.min())
        row["sentence_mean"] = float(shares.mean())
        row["sentences_given"] = float((shares == 1).mean())
        row["sentences_new"] = float((shares < 0.5).mean())
    return row


def _facts(ids: Array, names: _Flags, known: _Flags, numeric: _Flags) -> dict[str, float]:
    """How many distinct numbers and names were given, and how many were not."""
    row: dict[str, float] = {}
    for name, kind in (("numbers", numeric), ("names", names & ~numeric)):
        row[f"{name}_given"] = len(np.unique(ids[kind & known]))
        row[f"{name}_new"] = len(np.unique(ids[kind & ~known]))
    return row


def _share_used(heard: Sequence[int], ids: Array, content: _Flags) -> float:
    """The share of the content words of `heard` that are among `ids`."""
    asked = np.unique(np.array(heard, dtype=np.int64))
    asked = asked[content[asked]]
    return share(int(np.isin(asked, ids).sum()), len(asked))
