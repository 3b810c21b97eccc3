"""Hashed n-grams of a text: words and word pairs, and its characters three to five (Weinberger et al. 2009).

All in numpy, over the bytes of texts in UTF-8 and lower case, of several texts at a time: short ones then cost no more
than what they are long. Words are runs of ASCII letters, digits and underscores, and of whatever is not ASCII.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[np.int64]
Counts = NDArray[np.float64]
_Words = NDArray[np.uint64]

COLUMNS = 2**18  # of each channel
_SIZES = (3, 4, 5)  # bytes of a piece
_MOST_BYTES = 64  # of a word: what comes after them does not count
_SPACE = 0x20
_IS_WORD = np.zeros(256, dtype=bool)
_IS_WORD[[*b"0123456789_abcdefghijklmnopqrstuvwxyz", *range(128, 256)]] = True
_IS_BLANK = np.zeros(256, dtype=bool)
_IS_BLANK[[*b" \t\n\r\v\f"]] = True
_MULTIPLIER = 0x9E3779B97F4A7C15
_POWERS = np.array([pow(_MULTIPLIER, place + 1, 2**64) for place in range(_MOST_BYTES + 1)], dtype=np.uint64)
_POWERS[_MOST_BYTES] = 0
_PAIR = np.uint64(pow(_MULTIPLIER, 2 * _MOST_BYTES + 1, 2**64))


def words(text: str, *, salt: int = 0) -> tuple[Columns, Counts]:
    """The columns of the words and word pairs of a text, ascending, and how often each is in it.

    salt: another number hashes the same words to other columns.
    """
    return _counted(word_columns_by_text([text], salt=salt)[1])


def pieces(text: str) -> tuple[Columns, Counts]:
    """The same of its pieces of three to five bytes: within a word, with the blank before and after it."""
    return _counted(piece_columns_by_text([text])[1])


def word_columns_by_text(texts: Sequence[str], *, salt: int = 0) -> tuple[Columns, Columns]:
    """The place of the text and the column of each word of several texts, then those of each word pair: [n], [n]."""
    codes, lengths = _joined_bytes(texts)
    found = _word_hashes(codes)
    owners = _owners(lengths)[_word_starts(codes)]
    inside = owners[:-1] == owners[1:]
    hashes = np.concatenate([found, _pair_hashes(found)[inside]])
    return np.concatenate([owners, owners[:-1][inside]]), _columns(hashes, 2 * salt)


def piece_columns_by_text(texts: Sequence[str]) -> tuple[Columns, Columns]:
    """The place of the text and the column of each piece of several texts: [n], [n]."""
    codes, lengths = _joined_bytes(texts)
    hashes, middles = _piece_hashes(codes)
    return _owners(lengths)[middles], _columns(hashes, 1)


def word_columns(text: str, *, salt: int = 0) -> tuple[Columns, Columns]:
    """The columns of each word of a text in order, and of each word with the next one: [words], [words - 1]."""
    found = _word_hashes(_bytes(text))
    return _columns(found, 2 * salt), _columns(_pair_hashes(found), 2 * salt)


def piece_columns(text: str) -> tuple[Columns, Columns]:
    """The column of each piece of a text, and the place of the word that it lies in, by its middle: [pieces], [pieces].

    What lies before the first word has the place -1; what lies between two words is counted to the first of them.
    """
    codes = _bytes(text)
    hashes, middles = _piece_hashes(codes)
    owners = np.searchsorted(_word_starts(codes), middles, side="right") - 1
    return _columns(hashes, 1), owners.astype(np.int64)


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(_encoded(text), dtype=np.uint8)


def _encoded(text: str) -> bytes:
    return text.lower().encode("utf-8", "replace")


def _joined_bytes(texts: Sequence[str]) -> tuple[NDArray[np.uint8], list[int]]:
    """The bytes of all texts, a blank after each but the last, so that no n-gram lies in two; the bytes of each text
    with its blank."""
    encoded = [_encoded(text) for text in texts]
    return np.frombuffer(b" ".join(encoded), dtype=np.uint8), [len(each) + 1 for each in encoded]


def _owners(lengths: Sequence[int]) -> Columns:
    """[bytes]: the place of the text that each lies in."""
    return np.repeat(np.arange(len(lengths)), lengths)


def _word_starts(codes: NDArray[np.uint8]) -> NDArray[np.intp]:
    is_word = _IS_WORD[codes]
    return np.flatnonzero(is_word & ~np.concatenate([[False], is_word[:-1]]))


def _word_hashes(codes: NDArray[np.uint8]) -> _Words:
    """[words], in order: a polynomial of the word's bytes."""
    if not len(codes):
        return np.empty(0, dtype=np.uint64)
    is_word = _IS_WORD[codes]
    starts = _word_starts(codes)
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    place = np.arange(len(codes))
    start = np.repeat(starts, np.diff(np.append(starts, len(codes))))
    within = np.minimum(place[starts[0] :] - start, _MOST_BYTES)
    terms = (codes[starts[0] :].astype(np.uint64) + np.uint64(1)) * _POWERS[within] * is_word[starts[0] :]
    return np.add.reduceat(terms, starts - starts[0])


def _pair_hashes(found: _Words) -> _Words:
    return found[:-1] * _PAIR + found[1:]


def _piece_hashes(codes: NDArray[np.uint8]) -> tuple[_Words, NDArray[np.int64]]:
    """[pieces] and the byte of the text in the middle of each."""
    nothing = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    if not len(codes):
        return nothing
    blank = _IS_BLANK[codes]
    codes = np.concatenate([[_SPACE], np.where(blank, _SPACE, codes), [_SPACE]]).astype(np.uint64)
    is_letter = codes != _SPACE
    packed, inside = codes[:-1] << np.uint64(8) | codes[1:], is_letter[1:-1]
    found, middles = [nothing[0]], [nothing[1]]
    for size in _SIZES:
        packed = packed[:-1] << np.uint64(8) | codes[size - 1 :]
        if size > _SIZES[0]:
            inside = inside[:-1] & is_letter[size - 2 : -1]
        places = np.flatnonzero(inside)
        found.append(packed[places] | np.uint64(size << 8 * size))
        middles.append(places + size // 2 - 1)  # a blank was put before the text
    return np.concatenate(found), np.concatenate(middles)


def _counted(found: Columns) -> tuple[Columns, Counts]:
    columns, counts = np.unique(found, return_counts=True)
    return columns, counts.astype(np.float64)


def _columns(hashes: _Words, salt: int) -> Columns:
    return (_mixed(hashes, salt) & np.uint64(COLUMNS - 1)).astype(np.int64)


def _mixed(hashes: _Words, salt: int) -> _Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit."""
    mixed = hashes + np.uint64((salt + 1) * _MULTIPLIER % 2**64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)
