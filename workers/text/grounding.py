"""The share of each chunk that appeared before, and its source: information that an embedding of the chunk lacks.

Computed from token ids, in order, so that a chunk's numbers never depend on what comes after it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
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
_ID_BITS = 21  # of a token id: three of them are one number


@dataclass(frozen=True, slots=True)
class GramCounts:
    """Distinct n-grams of the chunks. counts: [chunks], of each. given, own: [grams], the chunk in which others, or
    the agent, said each first; the number of chunks where they never did. before_given, before_own: [chunks], how
    many of its n-grams were said before it.
    """

    counts: Array
    given: Array
    own: Array
    before_given: Array
    before_own: Array


def grounding(chunks: Iterable[tuple[Sequence[int], bool]]) -> tuple[tuple[float, ...], ...]:
    """[chunks][NAMES] of (ids, is the agent's). Shares are in 0..1, lengths log(1 + tokens) / 8.

    given: what others said before the chunk (task, users, tools); own: what the agent said before it.
    given_covered: the share of the given tokens that the agent has used up to and with this chunk.
    """
    parts = list(chunks)
    is_own = np.array([own for _, own in parts], dtype=bool)
    lengths = np.array([len(ids) for ids, _ in parts], dtype=np.int64)
    ids = np.array([id_ for ids, _ in parts for id_ in ids], dtype=np.int64)
    chunk = np.repeat(np.arange(len(parts)), lengths)
    if not len(ids):
        return ((0.0,) * len(NAMES),) * len(parts)
    tokens, bigrams, trigrams = (count_grams(ids, chunk, is_own, size) for size in (1, 2, 3))
    given_lengths = np.where(is_own, 0, lengths)
    rows = zip(
        *(shares(token.before_given, token.counts) for token in (tokens, bigrams, trigrams)),
        _covered(tokens, is_own),
        *(shares(token.before_own, token.counts) for token in (tokens, bigrams)),
        [
            1 - count / length if length else 0.0
            for count, length in zip(tokens.counts.tolist(), lengths.tolist(), strict=True)
        ],
        *(
            [math.log1p(count) / 8 for count in counts]
            for counts in (lengths, np.cumsum(given_lengths) - given_lengths)
        ),
        strict=True,
    )
    return tuple(rows)


def count_grams(ids: Array, chunk: Array, is_own: NDArray[np.bool_], size: int) -> GramCounts:
    many = len(is_own)
    end = max(len(ids) - size + 1, 0)
    whole = chunk[:end] == chunk[len(chunk) - end :]  # n-grams do not cross from one chunk to the next
    grams = np.zeros(end, dtype=np.int64)
    for start in range(size):
        grams = grams << _ID_BITS | ids[start : start + end]
    grams, where = grams[whole], chunk[:end][whole]
    order = np.argsort(grams, kind="stable")
    grams, where = grams[order], where[order]
    distinct = np.ones(len(grams), dtype=bool)
    distinct[1:] = (grams[1:] != grams[:-1]) | (where[1:] != where[:-1])
    grams, where = grams[distinct], where[distinct]
    starts = np.flatnonzero(np.concatenate([[True] * (len(grams) > 0), grams[1:] != grams[:-1]]))
    first = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(grams))))
    mine = is_own[where]
    given = np.minimum.reduceat(np.where(mine, many, where), starts) if len(starts) else starts
    own = np.minimum.reduceat(np.where(mine, where, many), starts) if len(starts) else starts
    return GramCounts(
        counts=np.bincount(where, minlength=many),
        given=given,
        own=own,
        before_given=np.bincount(where[given[first] < where], minlength=many),
        before_own=np.bincount(where[own[first] < where], minlength=many),
    )


def _covered(tokens: GramCounts, is_own: NDArray[np.bool_]) -> list[float]:
    """Up to and with each chunk of the agent's; up to each of the others'."""
    many = len(is_own)
    both = np.maximum(tokens.given, tokens.own)
    used, given = (
        np.cumsum(np.bincount(first[first < many], minlength=many)) for first in (both, tokens.given)
    )
    used, given = (np.where(is_own, all_, np.append(0, all_[:-1])) for all_ in (used, given))
    return shares(used, given)


def shares(part: Array, whole: Array) -> list[float]:
    return [share / all_ if all_ else 0.0 for share, all_ in zip(part.tolist(), whole.tolist(), strict=True)]
