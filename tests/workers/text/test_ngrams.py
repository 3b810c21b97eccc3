"""Hashed n-grams: what counts as a word, a pair and a piece, and that columns hardly collide."""

import numpy as np
import pytest

from workers.text.ngrams import (
    COLUMNS,
    piece_columns_by_text,
    pieces,
    word_columns,
    word_columns_by_text,
    words,
)


def by_column(found) -> dict[int, float]:
    return dict(zip(*(part.tolist() for part in found), strict=True))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n\t", 0),
        ("... !?", 0),
        ("one", 1),
        ("Hello, world", 2),
        ("snake_case 12", 2),
        ("isn't", 2),
        ("Zürich", 1),
        ("注文 は 17", 3),
    ],
)
def test_words_are_counted(text, count) -> None:
    assert len(word_columns(text)[0]) == count


def test_words_and_pairs_are_counted_whatever_their_case() -> None:
    found = by_column(words("No no NO"))
    assert sorted(found.values()) == [2.0, 3.0]  # "no no" and "no"
    assert found == by_column(words("no, no: no!"))
    assert set(by_column(words("a b"))) == set(by_column(words("a"))) | set(by_column(words("b"))) | (
        set(by_column(words("a b"))) - set(by_column(words("b a")))
    )
    assert by_column(words("a b")) != by_column(words("b a"))


def test_a_salt_gives_other_columns() -> None:
    assert not set(by_column(words("sent on Monday"))) & set(by_column(words("sent on Monday", salt=1)))


def test_pieces_are_of_three_to_five_bytes_within_a_word() -> None:
    assert sum(by_column(pieces("abcd")).values()) == 4 + 3 + 2  # of " abcd "
    assert sum(by_column(pieces("ab cd")).values()) == 2 * (2 + 1)  # of " ab " and " cd ", none across
    assert by_column(pieces("ab\ncd")) == by_column(pieces(" ab cd "))
    assert by_column(pieces("")) == {}


def test_columns_are_spread_evenly() -> None:
    columns, counts = words(" ".join(f"w{number}" for number in range(20_000)))
    assert columns.min() >= 0
    assert columns.max() < COLUMNS
    expected = COLUMNS * (1 - np.exp(-39_999 / COLUMNS))  # distinct columns of so many balls
    assert len(columns) == pytest.approx(expected, rel=0.01)
    assert counts.sum() == 39_999


def test_long_words_and_lone_surrogates_are_read() -> None:
    assert len(word_columns("x" * 100_000)[0]) == 1
    assert by_column(words("a" * 64 + "b")) == by_column(words("a" * 64 + "c"))  # the rest does not count
    assert len(pieces("bad \ud800 text")[0]) > 0


@pytest.mark.parametrize("salt", [0, 1])
def test_texts_together_have_the_columns_that_each_has_alone(salt) -> None:
    texts = [
        "",
        "Hello, world",
        " ",
        "a",
        "x\ty\n",
        "ΣΑΣ",
        "Zürich \ud800",
        "snake_case 12",
        "",
        "注文 は 17",
    ]
    owners, columns = word_columns_by_text(texts, salt=salt)
    pieces_owners, pieces_columns = piece_columns_by_text(texts)
    for place, text in enumerate(texts):
        found = sorted(columns[owners == place].tolist())
        assert found == sorted(np.concatenate(word_columns(text, salt=salt)).tolist())
        alone, counts = pieces(text)
        assert (
            sorted(pieces_columns[pieces_owners == place].tolist())
            == np.repeat(alone, counts.astype(int)).tolist()
        )


def test_no_text_has_no_columns() -> None:
    assert [len(part) for part in (*word_columns_by_text([]), *piece_columns_by_text([]))] == [0] * 4
