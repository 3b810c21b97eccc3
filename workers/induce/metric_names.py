"""Names of metrics: short phrases that annotators wrote, which one metric's points have and others' have not.

A phrase is up to MAX_PHRASE_WORDS words in a row of one point, from a word that carries meaning, or a negation, to a
word that carries meaning. Phrases with the same such words, in any form, count as one ("checked the order", "check of
the order"). The one is taken that most of the metric's points have and that distinguishes them from the others'
(class-based TF-IDF: Grootendorst 2022, https://arxiv.org/abs/2203.05794, equation 2), longer ones before their parts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

MAX_NAME_LENGTH = 60
MAX_PHRASE_WORDS = 6
_MAX_CONTENT_WORDS = 4
_SINGLE_WEIGHT = 0.3  # of a phrase of one word, which seldom says what is good or bad
_STEM = 5  # letters by which forms of a word are known
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_BREAK = re.compile(r"[.,;:!?()\[\]{}\"“”`=<>/\\–—]")
_NEGATIONS = frozenset(
    {"no", "not", "never", "none", "without", "nothing", "cannot"}
    | {f"{verb}n't" for verb in ("did", "does", "do", "is", "was", "has", "ca", "could", "should", "would")}
)
# Words that carry nothing about an agent.
_STOP_WORDS = ENGLISH_STOP_WORDS | {"agent", "assistant", "does", "did", "doing", "it's", "that's", "there's"}

PhraseKey = tuple[str, ...]


def name_metrics(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of texts, all of them different."""
    found = [_phrases(texts) for texts in groups]
    totals = Counter(key for phrases in found for key, forms in phrases.items() for _ in range(forms.total()))
    average = totals.total() / max(len(groups), 1)
    names: list[str] = []
    for texts, phrases in zip(groups, found, strict=True):
        weights = {
            key: forms.total() * math.log(1 + average / totals[key]) * _length_weight(key)
            for key, forms in phrases.items()
        }
        key = min(weights, key=lambda key: (-weights[key], key), default=None)
        name = _usual_form(phrases[key]) if key is not None else (texts[0] if texts else "metric")
        names.append(_make_unique(_shorten(name), names))
    return names


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in their order."""
    return [word for word in _WORD.findall(text.casefold()) if _carries_meaning(word)]


def _phrases(texts: Sequence[str]) -> dict[PhraseKey, Counter[str]]:
    """Of each phrase how many texts have it, by the form they have it in (the first, where a text has several)."""
    found: dict[PhraseKey, Counter[str]] = {}
    for text in texts:
        forms: dict[PhraseKey, str] = {}
        for key, form in _phrases_of_text(text):
            forms.setdefault(key, form)
        for key, form in forms.items():
            found.setdefault(key, Counter())[form] += 1
    return found


def _phrases_of_text(text: str) -> Iterator[tuple[PhraseKey, str]]:
    for part in _BREAK.split(text):
        words = _WORD.findall(part)
        plain = [word.casefold().replace("’", "'") for word in words]
        content = [_carries_meaning(word) for word in plain]
        for start, first in enumerate(plain):
            if not content[start] and first not in _NEGATIONS:
                continue
            for end in range(start + 1, min(start + MAX_PHRASE_WORDS, len(words)) + 1):
                if not content[end - 1]:
                    continue
                stems = [_stem(plain[place]) for place in range(start, end) if content[place]]
                negated = any(word in _NEGATIONS for word in plain[start:end])
                if len(stems) <= _MAX_CONTENT_WORDS:
                    key = (*sorted(set(stems)), *(["not"] if negated else []))
                    yield key, " ".join(words[start:end])


def _length_weight(key: PhraseKey) -> float:
    return math.sqrt(len(key)) if len(key) > 1 else _SINGLE_WEIGHT


def _carries_meaning(word: str) -> bool:
    return len(word) > 2 and word not in _STOP_WORDS and word not in _NEGATIONS


def _stem(word: str) -> str:
    return word[:_STEM]


def _usual_form(forms: Counter[str]) -> str:
    """The most frequent, of those the shortest."""
    return min(forms, key=lambda form: (-forms[form], len(form), form))


def _shorten(name: str) -> str:
    """Cut between words where possible."""
    name = " ".join(name.split())
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return name[:MAX_NAME_LENGTH].rpartition(" ")[0] or name[:MAX_NAME_LENGTH]


def _make_unique(name: str, names: Sequence[str]) -> str:
    number = 2
    found = name
    while found in names:
        found, number = f"{name} ({number})", number + 1
    return found
