"""What any language model gives back, wherever it runs, and how likely each of several answers was to it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workers.errors import RewardError
from workers.schema.patterns import TextPattern, quote

DRAWN = 0.7  # temperature of answers that are drawn, as in Wang et al., https://arxiv.org/abs/2203.11171
_UNCLEAR = 0.05  # of what is known: where more could be one word or another, nothing is said
_END = TextPattern(r'[",}\]\s]')  # what ends a word or a number
LIKELIEST = 20  # alternatives of a token that are asked for: no server gives more


class NoAnswer(RewardError):
    """The model was asked, and gave nothing that could be accepted. The others may still be asked."""


@dataclass(frozen=True, slots=True)
class Token:
    """likeliest: log-probabilities by text, of what could have stood here."""

    text: str
    likeliest: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """problem: what is wrong with it on its own, or empty. tokens: those of `said`, where they were asked for and the
    model tells them."""

    said: str
    problem: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: Sequence[Token] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """messages: of a chat; the content of one is a text, or parts with pictures. schema: of the JSON object that is
    the answer, called `name`. draw: None for what the model thinks likeliest; a number for an answer drawn by it.
    likeliest: whether tokens are wanted."""

    messages: Sequence[Mapping[str, Any]]
    name: str
    schema: Mapping[str, Any]
    draw: int | None = None
    likeliest: bool = False


class Model(Protocol):
    """Thread-safe. Raises NoAnswer where this one has none; RewardError where no one will have one."""

    def complete(self, wanted: Wanted) -> Completion: ...


def chances(completion: Completion, field: str, each: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """For each time the answer gives `field`, how likely each of its words was there; they sum to 1.

    each: the words, by time. Empty where the tokens are not known, the field is not given so often, or words cannot be
    told from each other by the token they begin with.
    """
    ends, at = [], 0
    for token in completion.tokens:
        at += len(token.text)
        ends.append(at)
    text = "".join(token.text for token in completion.tokens)
    found = []
    places = list(TextPattern(rf'"{quote(field)}"\s*:\s*"?').finditer(text))
    if len(places) != len(each):
        return []
    for place, words in zip(places, each, strict=True):
        index = next((number for number, end in enumerate(ends) if end > place.end()), None)
        if index is None:
            return []
        start = ends[index] - len(completion.tokens[index].text)
        before = text[start : place.end()]  # of the same token: a quote, a space
        mass, unclear = _mass(completion.tokens[index].likeliest, before, words)
        total = math.fsum(mass.values())
        if total <= 0 or unclear > _UNCLEAR * total:
            return []
        found.append({word: mass[word] / total for word in words})
    return found


def _mass(
    likeliest: Mapping[str, float], before: str, words: Sequence[str]
) -> tuple[dict[str, float], float]:
    """By word, the probability of tokens that only it begins with; and that of tokens which several do."""
    mass, unclear = dict.fromkeys(words, 0.0), 0.0
    for token, log in likeliest.items():
        if not token.startswith(before):
            continue
        rest = token[len(before) :]
        begins = _END.split(rest, maxsplit=1)[0]
        meant = [word for word in words if word == begins or (begins == rest and word.startswith(begins))]
        if begins and len(meant) == 1:
            mass[meant[0]] += math.exp(log)
        elif begins and meant:
            unclear += math.exp(log)
    return mass, unclear
