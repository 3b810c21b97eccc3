"""How much of each chunk was said before, and by whom: numbers that an embedding of the chunk alone cannot hold.

Computed from token ids, in order, so that a chunk's numbers never depend on what comes after it.
"""

import math
from collections.abc import Iterable, Sequence

NAMES = (
    "tokens_given",
    "bigrams_given",
    "trigrams_given",
    "given_covered",
    "tokens_own",
    "bigrams_own",
    "repeated",
    "length",
    "given_length",
)


def grounding(chunks: Iterable[tuple[Sequence[int], bool]]) -> tuple[tuple[float, ...], ...]:
    """[chunks][NAMES] of (ids, is the agent's). Shares are in 0..1, lengths log(1 + tokens) / 8.

    given: what others said before the chunk (task, users, tools); own: what the agent said before it.
    given_covered: the share of the given tokens that the agent has used up to and with this chunk.
    """
    given = [set[tuple[int, ...]]() for _ in range(3)]
    own = [set[tuple[int, ...]]() for _ in range(3)]
    covered = 0  # of the given tokens, those the agent has used
    given_tokens, rows = 0, []
    for ids, is_agent in chunks:
        grams = [set(zip(*(ids[start:] for start in range(size)), strict=False)) for size in (1, 2, 3)]
        if is_agent:
            covered += len((grams[0] - own[0]) & given[0])
        rows.append(
            (
                *(_share(grams[size], given[size]) for size in range(3)),
                covered / len(given[0]) if given[0] else 0.0,
                *(_share(grams[size], own[size]) for size in range(2)),
                1 - len(grams[0]) / len(ids) if ids else 0.0,
                math.log1p(len(ids)) / 8,
                math.log1p(given_tokens) / 8,
            )
        )
        if not is_agent:
            covered += len((grams[0] - given[0]) & own[0])
        for seen, new in zip(own if is_agent else given, grams, strict=True):
            seen |= new
        given_tokens += 0 if is_agent else len(ids)
    return tuple(rows)


def _share(part: set[tuple[int, ...]], whole: set[tuple[int, ...]]) -> float:
    return len(part & whole) / len(part) if part else 0.0
