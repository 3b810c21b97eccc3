"""Full-text search of trajectories in PostgreSQL: exact words without stemming, in any language."""

import re
from collections.abc import Iterator

from django.contrib.postgres.search import SearchQuery

from apps.trajectories.search_vectors import SEARCH_CONFIG, search_vector
from workers.schema import Trajectory
from workers.schema.patterns import SPACE, TextPattern

# Characters of one text, half of them from its end, and of a trajectory that are indexed.
_STEP, _ALL = 8_000, 200_000
_BETWEEN_WORDS = re.compile(r"[^\w]+")
_TERM = TextPattern(rf'(-?)"([^"]*)"?|([^{SPACE}]+)')


def searchable_words(trajectory: Trajectory) -> str:
    """The text to index, with a space between words, so that paths and URLs are found by their parts."""
    return _BETWEEN_WORDS.sub(" ", _text(trajectory))


def search_index(trajectory: Trajectory) -> bytes | str:
    """The vector to store (`search_vectors`), or the words that the database makes it of."""
    text = _text(trajectory)
    vector = search_vector(text)
    return _BETWEEN_WORDS.sub(" ", text) if vector is None else vector


def _text(trajectory: Trajectory) -> str:
    texts = [
        text if len(text) <= _STEP else f"{text[: _STEP // 2]} {text[-_STEP // 2 :]}"
        for text in _texts(trajectory)
        if text
    ]
    if sum(map(len, texts)) <= _ALL:
        return " ".join(texts)
    pieces, left = [], _ALL
    for text in texts:
        pieces.append(_BETWEEN_WORDS.sub(" ", text[:left]))
        left -= len(pieces[-1])
        if left <= 0:
            break
    return " ".join(pieces)


def search_query(text: str) -> SearchQuery | None:
    """Supports all words, "phrases", `or` and -exclusion. None if the query has no word."""
    terms = []
    for minus, quoted, bare in _TERM.findall(text):
        sign, phrase = (minus, quoted) if quoted else ("-" if bare.startswith("-") else "", bare)
        words = _BETWEEN_WORDS.sub(" ", phrase).strip()
        if words:
            terms.append("or" if bare.lower() == "or" else f'{sign}"{words}"')
    return SearchQuery(" ".join(terms), config=SEARCH_CONFIG, search_type="websearch") if terms else None


def first_term(text: str) -> str:
    """The first word or phrase of a query, to highlight it."""
    for minus, quoted, bare in _TERM.findall(text):
        if not minus and not bare.startswith("-") and bare.lower() != "or" and (quoted or bare):
            return str(quoted or bare)
    return ""


def _texts(trajectory: Trajectory) -> Iterator[str]:
    yield trajectory.task.id
    yield trajectory.task.instruction
    yield from (trajectory.agent, trajectory.agent_version, trajectory.id or "")
    for step in trajectory.steps:
        yield step.speaker or ""
        yield step.text
        yield step.reasoning or ""
        for call in step.tool_calls:
            yield f"{call.name} {call.arguments_text}"
        for result in step.observation:
            yield from (part.text for part in result.content if part.text)
