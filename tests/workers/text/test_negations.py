"""Conditions that are turned around, and what they are about."""

import pytest

from workers.schema.conditions import Condition
from workers.text.negations import is_turned, without_negation

ABOUT = "the reply is about the tent"


@pytest.mark.parametrize(
    ("name", "text", "turned", "about"),
    [
        ("principle", ABOUT, False, ABOUT),
        ("principle", f"The opposite of: {ABOUT}", True, ABOUT),
        ("principle", "the reply is never about the tent", True, ABOUT),
        ("goal", "the reply isn't about the tent", True, ABOUT),
        ("goal", "DON'T name the tent", True, "DO name the tent"),
        ("persona", "Avoid that the reply is about the tent", True, "that the reply is about the tent"),
        ("principle", "Not this: the reply is not about the tent", False, ABOUT),
        ("reference", "the reply is not about the tent", False, "the reply is not about the tent"),
        ("principle", "never", True, "never"),
        ("principle", "the knot  holds", False, "the knot  holds"),  # as it was, spaces too
    ],
)
def test_conditions(name: Condition, text: str, turned: bool, about: str) -> None:
    assert (is_turned(name, text), without_negation(name, text)) == (turned, about)
