"""Conditions that are turned around: what is not wanted, said of what it is about."""

from workers.schema.conditions import Condition, split_opposite
from workers.schema.patterns import TextPattern

# Conditions that say how something is to be; a reference answer says what.
TURNABLE: tuple[Condition, ...] = ("goal", "principle", "persona")
_SHORT_NOT = TextPattern(r"(?i)n't ")
_NEGATIONS = frozenset(("not", "never", "avoid", "avoids", "without"))


def is_turned(name: Condition, text: str) -> bool:
    """Whether it says what is not wanted: a phrase of training (`split_opposite`) or a word such as "never"; both
    together say what is wanted again."""
    text, is_opposite = split_opposite(text)
    return is_opposite != (name in TURNABLE and not _NEGATIONS.isdisjoint(_words(text)))


def without_negation(name: Condition, text: str) -> str:
    """What it is about: its words without those that turn it around. A text without any is as it was."""
    if name not in TURNABLE:
        return text
    text, _ = split_opposite(text)
    if _NEGATIONS.isdisjoint(_words(text)):
        return text
    words = _SHORT_NOT.sub(" not ", text).split()
    return " ".join(word for word in words if word.lower() not in _NEGATIONS) or text


def _words(text: str) -> list[str]:
    return text.lower().replace("n't ", " not ").split()
