"""Which of two answers is better, as data sets of judges say it."""

from typing import Any

import pytest

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers import READERS
from tests.annotation.feedback.test_readers import read
from workers.errors import InvalidRecord

LETTERS = {"prompt": "Name a color.", "response_A": "Blue.", "response_B": "Five."}
NUMBERS = {"question": "Name a color.", "output_1": "Blue.", "output_2": "Five."}
AUTO_J = {"prompt": "Name a color.", "response 1": "Blue.", "response 2": "Five."}


def only(row: dict[str, Any]) -> Any:
    (found,) = read("answer-pairs", row)
    return found


@pytest.mark.parametrize(
    ("row", "choice", "strength"),
    [
        (LETTERS | {"winner": "A"}, "a", 1),
        (LETTERS | {"winner": "response_B"}, "b", 1),
        (LETTERS | {"preferred": "Model B"}, "b", 1),
        (LETTERS | {"winner": "model_a"}, "a", 1),
        (LETTERS | {"label": "B>A"}, "b", 1),
        (LETTERS | {"label": "[[A>>B]]"}, "a", 2),
        (LETTERS | {"label": "A<B"}, "b", 1),
        (LETTERS | {"label": "A=B"}, "tie", 1),
        (LETTERS | {"winner": "tie"}, "tie", 1),
        (LETTERS | {"winner": "tie (bothbad)"}, "both_bad", 1),
        (LETTERS | {"winner": "fox-2", "model_a": "fox-1", "model_b": "fox-2"}, "b", 1),
        (LETTERS | {"score_A": 0.25, "score_B": "0.5"}, "b", 1),
        (LETTERS | {"response_A_score": 2, "response_B_score": 2}, "tie", 1),
        (NUMBERS | {"label": 1}, "a", 1),
        (NUMBERS | {"label": "2"}, "b", 1),
        (AUTO_J | {"label": 0}, "a", 1),
        (AUTO_J | {"label": 1}, "b", 1),
        (AUTO_J | {"label": 2}, "tie", 1),
    ],
)
def test_a_label_names_the_better_answer(row: dict[str, Any], choice: str, strength: int) -> None:
    found = only(row)
    assert isinstance(found, Incoming)
    assert (found.value.choice, found.value.strength) == (choice, strength)
    assert [place.steps[1].text for place in found.places] == ["Blue.", "Five."]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (LETTERS | {"label": 1}, "names one of the answers ('A', 'B')"),
        (NUMBERS | {"label": 0}, "names one of the answers ('1', '2')"),
        (LETTERS | {"winner": True}, "names one of the answers"),
        (LETTERS | {"winner": "the first"}, "names one of the answers"),
        (LETTERS | {"label": "A>C"}, "an order is such as 'A>B'"),
        (LETTERS, "does not say which answer is better"),
        ({"prompt": "Q", "response_A": "a", "winner": "A"}, "is no row of this format"),
    ],
)
def test_a_label_that_names_none_is_refused(row: dict[str, Any], message: str) -> None:
    found = only(row)
    assert isinstance(found, InvalidRecord) and message in found.message


def test_who_judged_and_who_answered() -> None:
    found = only(LETTERS | {"winner": "A", "judge": "ann", "model_a": "fox-1", "model_b": "fox-2"})
    assert found.annotator == "ann"
    assert [place.agent for place in found.places] == ["fox-1", "fox-2"]
    assert "answer-pairs" in READERS and only(LETTERS | {"winner": "B"}).annotator == "answer-pairs"
