"""A principle that is negated in words that training never had turns the rewards of a step-encoder."""

import random
from dataclasses import replace

import pytest

from benchmarks.conditions import (
    NEGATIONS,
    THINGS,
    compare_replies,
    conversation,
    fitted,
    raws,
    recipe_of,
    records,
)
from workers.schema.conditions import conditioned_records, with_conditions

pytestmark = pytest.mark.ml


def test_negations_in_new_words_turn_the_reward() -> None:
    """By principles about things that no principle in training was about."""
    dice = random.Random(1)
    known, unseen = THINGS[10:], THINGS[:10]
    recipe = replace(recipe_of("step-encoder", "principle", "bradley_terry"), ensemble=1, epochs=4)
    training = records([compare_replies(known, dice) for _ in range(120)], dice, 0)
    model = fitted(recipe, conditioned_records(training, recipe.conditioned), 1)
    asked = [
        each for each in (compare_replies(unseen, dice) for _ in range(60)) if "about" in each.principle
    ][:20]

    def share(principles: list[str]) -> float:
        """Of the comparisons in which the reply that is about the thing has the higher reward."""
        sides = [
            with_conditions(conversation(text, "x"), ("principle",), {"principle": principle})
            for each, principle in zip(asked, principles, strict=True)
            for text in (each.better, each.worse)
        ]
        found = raws(model, sides)
        return sum(better > worse for better, worse in zip(found[::2], found[1::2], strict=True)) / len(asked)

    assert share([each.principle for each in asked]) >= 0.9
    for turn in NEGATIONS:
        assert share([turn(each.principle) for each in asked]) <= 0.1
