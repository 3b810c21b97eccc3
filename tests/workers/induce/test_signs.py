"""Praise, blame, and neither."""

import numpy as np
import pytest

from workers.induce.comment_points import SignClassifier, sign_of_praise
from workers.induce.embedding import Embedder


@pytest.fixture(scope="module")
def encode() -> Embedder:
    return Embedder()


def test_without_a_labelled_comment(encode: Embedder) -> None:
    signs = SignClassifier(encode, np.zeros((0, 384), np.float32), [])
    said = {
        "It handled the refund perfectly.": 1,
        "Great job checking the address before shipping.": 1,
        "It ignored the customer's question.": -1,
        "The agent booked the wrong flight.": -1,
        "The order number is 1767.": 0,
    }
    found = [
        sign_of_praise(float(chance))
        for chance in signs.praise_probabilities(encode(list(said)), [None] * len(said))
    ]
    assert found == list(said.values())


def test_labelled_comments_teach_it_what_words_mean_here(encode: Embedder) -> None:
    """Where speed is unwelcome, people say so, and it learns."""
    fast = [f"It answered within {n} seconds." for n in range(2, 30)]
    before = SignClassifier(encode, np.zeros((0, 384), np.float32), [])
    after = SignClassifier(encode, encode(fast), [-1] * len(fast))
    new = encode(["It answered within 45 seconds."])
    assert after.praise_probabilities(new, [None])[0] < before.praise_probabilities(new, [None])[0]
    assert sign_of_praise(float(after.praise_probabilities(new, [None])[0])) == -1


def test_the_sign_of_the_whole_comment_moves_its_points(encode: Embedder) -> None:
    signs = SignClassifier(encode, np.zeros((0, 384), np.float32), [])
    point = encode(["It looked at the order."])
    low, middle, high = (signs.praise_probabilities(point, [said])[0] for said in (-1, None, 1))
    assert low < middle < high


def test_no_points(encode: Embedder) -> None:
    signs = SignClassifier(encode, np.zeros((0, 384), np.float32), [])
    assert signs.praise_probabilities(np.zeros((0, 384), np.float32), []).shape == (0,)
