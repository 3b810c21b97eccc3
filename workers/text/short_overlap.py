"""What `Overlap` counts, for short trajectories, with Python's sets.

The arrays of `Overlap` take half a millisecond however little is in them, half of what rendering a short conversation
took. The numbers are the same.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

from workers.text.phrases import STOP_WORDS

CONTENT_WORDS = 2  # of a sentence that is looked at
_Gram = tuple[int, ...]


class ShortOverlap:
    """words: their numbers, in order. `rows` has the values of each agent step, by name."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._is_content = [word not in STOP_WORDS for word in words]
        self._is_number = [word[0].isdigit() for word in words]
        self._given, self._said = set[int](), set[int]()
        self._given_grams, self._said_grams = (set[_Gram](), set[_Gram]()), (set[_Gram](), set[_Gram]())
        self._given_content = 0
        self.rows: list[dict[str, float]] = []

    def read_given(self, ids: Sequence[int]) -> None:
        new = set(ids) - self._given
        self._given_content += sum(self._is_content[word] for word in new)
        self._given |= new
        for known, grams in zip(self._given_grams, _grams(ids), strict=True):
            known |= grams

    def read_agent(self, message: Any, arguments: Sequence[int], heard: Sequence[int]) -> None:
        """message: `MessageWords`. heard: words of the chunk of others that came last before."""
        ids, distinct, grams = message.ids, set(message.ids), _grams(message.ids)
        row = {
            "words_given": _share(len(distinct & self._given), len(distinct)),
            "words_own": _share(len(distinct & self._said), len(distinct)),
        }
        for name, found, given, said in zip(
            ("bigrams", "trigrams"), grams, self._given_grams, self._said_grams, strict=True
        ):
            row[f"{name}_given"] = _share(len(found & given), len(found))
            row[f"{name}_own"] = _share(len(found & said), len(found))
        row["trigrams_within"] = 1 - len(grams[1]) / (len(ids) - 2) if len(ids) > 2 else 0.0
        row |= self._sentences(message) | self._facts(message)
        used = sum(self._is_content[word] for word in distinct & self._given - self._said)
        row["context_covered"] = _share(used, self._given_content)
        asked = [word for word in {*heard} if self._is_content[word]] if ids else []
        row["heard_used"] = _share(len(distinct.intersection(asked)), len(asked))
        self._say(distinct, grams)
        called = {*arguments}
        row["arguments_known"] = _share(
            len(called & (self._given | self._said)) if called else 0, len(called)
        )
        self._say(called, _grams(arguments))
        self.rows.append(row)

    def _say(self, words: set[int], grams: tuple[set[_Gram], set[_Gram]]) -> None:
        self._said |= words
        for known, found in zip(self._said_grams, grams, strict=True):
            known |= found

    def _sentences(self, message: Any) -> dict[str, float]:
        totals, known = [0] * (len(message.ids) + 1), [0] * (len(message.ids) + 1)
        for word, sentence in zip(message.ids, message.sentences, strict=True):
            if self._is_content[word]:
                totals[sentence] += 1
                known[sentence] += word in self._given
        shares = [part / total for part, total in zip(known, totals, strict=True) if total >= CONTENT_WORDS]
        many = len(shares)
        return {
            "content_given": _share(sum(known), sum(totals)),
            "sentence_max": max(shares, default=0.0),
            "sentence_min": min(shares, default=0.0),
            # Not `sum`, which from Python 3.12 on rounds otherwise than numpy does.
            "sentence_mean": _share(reduce(add, shares, 0.0), many),
            "sentences_given": _share(sum(share == 1 for share in shares), many),
            "sentences_new": _share(sum(share < 0.5 for share in shares), many),
        }

    def _facts(self, message: Any) -> dict[str, float]:
        numbers = {word for word in message.ids if self._is_number[word]}
        names = {word for word, is_name in zip(message.ids, message.names, strict=True) if is_name} - numbers
        found = {}
        for name, kind in (("numbers", numbers), ("names", names)):
            given = len(kind & self._given)
            found[f"{name}_given"], found[f"{name}_new"] = float(given), float(len(kind) - given)
        return found


def _grams(ids: Sequence[int]) -> tuple[set[_Gram], set[_Gram]]:
    """The word pairs and triples of a chunk."""
    return {*pairwise(ids)}, {*zip(ids, ids[1:], ids[2:], strict=False)}


def _share(part: float, total: float) -> float:
    return part / total if total else 0.0
