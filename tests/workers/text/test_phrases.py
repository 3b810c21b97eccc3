"""Patterns that are looked for together are found as each is alone."""

import random

from workers.text.phrases import FAILURES, PHRASES, PhraseCounter, count_matches

_WORDS = (
    "I can't, I won't; sorry. maybe perhaps you should try to wait actually yes of course no not never thank you",
    "error errors failed 404 not found Traceback (most recent call last) KeyError: 'x' exit code: 1 HTTP/1.1 500",
    "let me check I'll please confirm would you like final answer \\boxed{3} #### task is done I’m my İ ſ K naïve 注文",
)


def texts() -> list[str]:
    dice = random.Random(0)
    words = [word for line in _WORDS for word in line.split()] + [
        "\n",
        "\n- ",
        "\n1. ",
        "**b**",
        "`c`",
        "|",
        "\ud800",
    ]
    return ["", "nothing", *(" ".join(dice.choices(words, k=dice.choice([1, 5, 40]))) for _ in range(300))]


def test_a_counter_counts_as_each_pattern_does() -> None:
    for patterns in (PHRASES, FAILURES):
        counter = PhraseCounter(patterns)
        seen = set()
        for text in texts():
            found = counter.count(text, 7)
            alone = {name: count_matches(pattern, text, 7) for name, pattern in patterns.items()}
            assert found == {name: count for name, count in alone.items() if count}, text
            seen |= found.keys()
        assert len(seen) > 0.7 * len(patterns)


def test_a_long_text_of_many_states_is_read_as_well() -> None:
    """A set of expressions that ran out of memory would match nothing."""
    dice = random.Random(1)
    text = "".join(dice.choices("abcdefg ilmnorstuwy'.,\n*`|-", k=300_000)) + " Sorry, I don't know."
    found = PhraseCounter(PHRASES).count(text, 7)
    assert {"apologies", "unknowns"} <= found.keys()
    assert found == {
        name: count for name, pattern in PHRASES.items() if (count := count_matches(pattern, text, 7))
    }
