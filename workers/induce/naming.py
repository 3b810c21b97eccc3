"""Names taken from what people wrote: nothing in them is made up.

A name is the words that set a metric's points apart from the others' (class-based TF-IDF: Grootendorst 2022,
https://arxiv.org/abs/2203.05794, equation 2).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

WORDS = 3
LONGEST = 60
_WORD = re.compile(r"[^\W\d_][\w'-]+")
# Words that carry nothing about an agent; those in every metric weigh little by themselves.
_EMPTY = ENGLISH_STOP_WORDS | {
    "agent",
    "assistant",
    "does",
    "did",
    "don't",
    "doesn't",
    "didn't",
    "isn't",
    "wasn't",
    "it's",
}


def names_of(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of texts, all of them different."""
    counts = [Counter(word for text in texts for word in set(_words(text))) for texts in groups]
    totals = sum(counts, Counter[str]())
    average = sum(totals.values()) / max(len(groups), 1)
    names: list[str] = []
    for texts, count in zip(groups, counts, strict=True):
        size = max(sum(count.values()), 1)
        weights = {
            word: held / size * math.log(1 + average / totals[word])
            for word, held in count.items()
            if held > 1 or len(texts) < 2 * WORDS
        }
        best = sorted(weights, key=lambda word: (-weights[word], word))
        name = ", ".join(_apart(best)[:WORDS])[:LONGEST] or (texts[0][:LONGEST] if texts else "metric")
        names.append(_unused(name, names))
    return names


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _EMPTY and len(word) > 2]


def _apart(words: Sequence[str]) -> list[str]:
    """Without forms of a word that is there already."""
    kept: list[str] = []
    for word in words:
        if not any(word[:5] == other[:5] for other in kept):
            kept.append(word)
    return kept


def _unused(name: str, names: Sequence[str]) -> str:
    number = 2
    found = name
    while found in names:
        found, number = f"{name} ({number})", number + 1
    return found
