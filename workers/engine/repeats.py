"""Which steps of a trajectory repeat each other."""

from collections.abc import Sequence

from workers.engine.rules.agent_text import texts
from workers.schema import Features, ScoreInput, Text, Trajectory
from workers.schema.patterns import TextPattern

_WORD = TextPattern(r"[\pL\pM\pN_]+")  # RE2's \w is ASCII only
_NGRAM = 2
# Nearly equal steps are looked for among the latest distinct ones: each step costs one comparison for each of them.
_MOST_COMPARED = 100


def repeated_steps(item: ScoreInput, similarity: float) -> tuple[int, ...]:
    """By agent step, the number of the first step that it repeats (its own where it repeats none).

    Of text: steps whose word pairs (messages, reasoning and calls, in lower case) are in common, over all of both, at a
    share of at least `similarity`; without letters and digits, equal texts. Of numbers: equal rows. Token ids are one
    step.
    """
    content = item.content
    if isinstance(content, Features):
        return _first_places(content.rows)
    if not isinstance(content, Trajectory | Text):
        return (0,)
    exact: dict[object, int] = {}
    distinct: list[tuple[frozenset[object], int]] = []
    found: list[int] = []
    for place, text in enumerate(texts(item)):
        words = tuple(_WORD.findall(text.lower()))
        key: object = words or text
        if key not in exact:
            pairs = _pairs(words)
            alike = (
                first
                for other, first in reversed(distinct[-_MOST_COMPARED:])
                if pairs and other and len(pairs & other) >= similarity * len(pairs | other)
            )
            exact[key] = next(alike, place)
            if exact[key] == place:
                distinct.append((pairs, place))
        found.append(exact[key])
    return tuple(found)


def _pairs(words: tuple[str, ...]) -> frozenset[object]:
    if len(words) < _NGRAM:
        return frozenset(words)
    return frozenset(zip(*(words[start:] for start in range(_NGRAM)), strict=False))


def _first_places(rows: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    first: dict[tuple[float, ...], int] = {}
    return tuple(first.setdefault(row, place) for place, row in enumerate(rows))
