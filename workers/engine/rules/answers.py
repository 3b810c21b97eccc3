"""Answers: taken out of what the agent said last, and compared with the right ones."""

import math
import string
from collections import Counter
from collections.abc import Callable

from workers.engine.rules.agent_text import agent_steps, message_of
from workers.engine.rules.math_text import last_boxed, number_of, same_math
from workers.engine.rules.references import reference_part, texts_of
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.patterns import TextPattern, quote
from workers.schema.reference_parts import AnswerMatch

_HINT = (
    "the reference is the right answer, as text, as a JSON list of alternatives, or as the key `answer` of an "
    "object."
)
_NUMBER = TextPattern(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
# Sign, whole part, what follows its point, and what it is divided by.
_PLAIN_NUMBER = TextPattern(r"([-+−]?)[$€£]?(\d{1,3}(?:,\d{3})+|\d*)(?:\.(\d+))?(?:/(\d+))?")
_BEFORE, _AFTER = "([{\"'$€£", "%)]}\"'.,;:!?"  # a number, in a sentence
_BETWEEN = TextPattern(r"[,;\n]")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset(("a", "an", "the"))
_MOST_MEMBERS = 10_000


def matched(rule: AnswerMatch, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """0 to 1. Raises RewardError at /reference for an item without a right answer."""
    right = texts_of(reference_part(item, "answer", _HINT), _HINT)
    steps = agent_steps(item)
    answer = extract(rule, message_of(steps[-1])) if steps else None
    if answer is None:
        value = 0.0
    elif rule.compare == "set":
        value = set_f1(answer, right)
    else:
        value = max(compare(rule, answer, one) for one in right)
    return ModelScore.at_last_step(value, len(steps))


def extract(rule: AnswerMatch, message: str) -> str | None:
    """The part of the message that is the answer; None where it has none."""
    if rule.extract == "message":
        return message.strip()
    if rule.extract == "boxed":
        return last_boxed(message)
    if rule.extract == "hashes":
        _, mark, after = message.rpartition("####")
        line = after.strip().partition("\n")[0].strip()
        if rule.compare == "numeric" and number_of(line) is None:  # #### 5 apples
            line = next(iter(_NUMBER.findall(line)), line)
        return line if mark else None
    if rule.extract == "number":
        numbers = _NUMBER.findall(message)
        return numbers[-1] if numbers else None
    found = TextPattern(rf"(?s)<{quote(rule.tag)}>(.*?)</{quote(rule.tag)}>").findall(message)
    return found[-1].strip() if found else None


def compare(rule: AnswerMatch, answer: str, right: str) -> float:
    if rule.compare == "exact":
        return float(normalised(answer) == normalised(right))
    if rule.compare == "f1":
        return f1(answer, right)
    if rule.compare == "math":
        return float(same_math(answer, right, relative=rule.relative, absolute=rule.absolute))
    theirs, mine = number_of(right), number_of(answer)
    if theirs is None:
        raise RewardError(
            f"answers are compared as numbers, and the reference {right[:100]!r} is none.",
            pointer="/reference",
        )
    return float(
        mine is not None
        and math.isclose(mine, theirs, rel_tol=min(rule.relative, 1.0), abs_tol=rule.absolute)
    )


def normalised(text: str) -> str:
    """As SQuAD's evaluation: lower case, without punctuation (ASCII), articles and needless spaces. But a number keeps
    its sign and its point, so that -3 is not 3 and 1.5 not 15, and has one form: 1,000.0 is 1000. Nor does what stands
    between two digits go: 10:30 is not 1030."""
    words = text.lower()
    if any(map(str.isdecimal, words)):
        words = " ".join(map(_plain_number, words.split()))
    else:
        words = words.translate(_NO_PUNCTUATION)
    return " ".join(word for word in words.split() if word not in _ARTICLES)


def _plain_number(word: str) -> str:
    """The number that a word is, whatever stands around it; else the word without punctuation, but between digits."""
    found = _PLAIN_NUMBER.fullmatch(word.lstrip(_BEFORE).rstrip(_AFTER))
    sign, whole, after, below = found.groups() if found else ("", "", "", None)
    if not (whole or after):
        around = zip(f" {word}", word, f"{word[1:]} ", strict=False)
        return "".join(
            sign
            for before, sign, then in around
            if sign not in string.punctuation or (before.isdecimal() and then.isdecimal())
        )
    number = whole.replace(",", "") or "0"
    if after and after.strip("0"):
        number += "." + after.rstrip("0")
    sign = "" if sign == "+" or not number.strip("0.") else sign
    return ("-" if sign else "") + number + (f"/{below}" if below else "")


def f1(answer: str, right: str) -> float:
    """F1 of the words, as SQuAD 2.0: where one has no words, 1 if neither has."""
    mine, theirs = normalised(answer).split(), normalised(right).split()
    if not mine or not theirs:
        return float(mine == theirs)
    return _f1((Counter(mine) & Counter(theirs)).total(), len(mine), len(theirs))


def set_f1(answer: str, right: list[str]) -> float:
    """F1 of the distinct members; those of the answer are between commas, semicolons or ends of lines."""
    mine = _members(_BETWEEN.split(answer, _MOST_MEMBERS))
    theirs = _members(right if len(right) > 1 else _BETWEEN.split(right[0], _MOST_MEMBERS))
    if not mine or not theirs:
        return float(mine == theirs)
    return _f1(len(mine & theirs), len(mine), len(theirs))


def _members(texts: list[str]) -> set[str]:
    return {member for text in texts if (member := normalised(text))}


def _f1(common: int, mine: int, theirs: int) -> float:
    return 2 * common / (mine + theirs)
