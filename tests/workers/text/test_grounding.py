import math

import pytest

from workers.text.grounding import NAMES, grounding


def test_shares_by_hand():
    given, answer = (1, 2, 3, 4), (1, 2, 9, 9)
    first, second, third = (
        dict(zip(NAMES, row, strict=True))
        for row in grounding([(given, False), (answer, True), ((9, 1), True)])
    )
    assert first == dict.fromkeys(NAMES, 0.0) | {"length": pytest.approx(math.log(5) / 8)}
    assert second["tokens_given"] == pytest.approx(2 / 3)  # 1, 2 of {1, 2, 9}
    assert second["bigrams_given"] == pytest.approx(1 / 3)  # (1, 2) of (1, 2), (2, 9), (9, 9)
    assert second["trigrams_given"] == 0
    assert second["given_covered"] == pytest.approx(1 / 2)
    assert second["repeated"] == pytest.approx(1 / 4)
    assert second["tokens_own"] == 0
    assert second["given_length"] == pytest.approx(math.log(5) / 8)
    assert third["tokens_own"] == 1
    assert third["bigrams_own"] == 0


def test_an_empty_chunk_has_numbers_too():
    assert grounding([((), True)]) == ((0.0,) * len(NAMES),)
