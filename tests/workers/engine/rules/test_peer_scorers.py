"""Scores of answers and tool calls against those of verl's own scorers, on thousands of strings."""

import json
import random
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tests.peer_modules import peer_loader
from workers.engine.rules import rate
from workers.engine.rules.tools import ParsedCall, match
from workers.schema import parse_item
from workers.schema.components import AnswerMatch

pytestmark = pytest.mark.ml

TRIES = 2000
Scorer = Callable[[str, str], float]


@pytest.fixture(scope="module")
def verl() -> SimpleNamespace:
    names = ("search_r1_like_qa_em", "math_reward", "gsm8k", "rlla")
    with peer_loader() as load:
        return SimpleNamespace(**{name: load("verl", f"utils/reward_score/{name}.py") for name in names})


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """verl prints one answer in 64, drawn at random, and what it cannot read."""
    monkeypatch.setattr("builtins.print", lambda *args, **options: None)


def ours(**rule: Any) -> Scorer:
    part = AnswerMatch(name="a", **rule)

    def score(text: str, right: str) -> float:
        item = parse_item({"prompt": "q", "response": text, "reference": json.dumps({"answer": right})})
        return rate(part, item, len).raw

    return score


def number(text: str) -> Fraction | None:
    """Of a text that is a number, read without any code of the scorers."""
    try:
        return Fraction(Decimal(text.strip().strip("$%()").rstrip(".").replace(",", "")))
    except InvalidOperation:
        return None


WORDS = [
    "the",
    "The",
    "a",
    "an",
    "Eiffel",
    "tower",
    "TOWER!",
    "cat's",
    "cats",
    "U.S.",
    "us",
    "é",
    "--",
    "...",
    "of",
]


def test_exact_match_is_search_r1s(verl: SimpleNamespace) -> None:
    """Answers in tags, of words: a few are drawn often, so that many are equal."""
    dice, score, paid = random.Random(0), ours(extract="tag"), 0
    for _ in range(TRIES):
        answer, right, before = (" ".join(dice.choices(WORDS, k=dice.randint(1, 3))) for _ in range(3))
        text = dice.choice(
            ["{}", "<answer>{}</answer>", "<answer>x</answer> <answer> {}\n</answer> so", "<answer>{}"]
        )
        text = f"{before} {text.format(answer)}"
        theirs = verl.search_r1_like_qa_em.compute_score(text, {"target": right})
        assert score(text, right) == theirs, (text, right)
        paid += theirs
    assert TRIES > paid > TRIES / 50


def test_exact_match_does_not_pay_wrong_numbers(verl: SimpleNamespace) -> None:
    """Search-R1's clean-up drops signs and points, so that -3 is 3 and 1.5 is 15. What is not paid here and is there,
    is another number; what is paid here only, is the same one."""
    dice, score = random.Random(1), ours(extract="tag")
    numbers = [
        "3",
        "-3",
        "15",
        "1.5",
        "1,500",
        "1500",
        "1500.0",
        "$15",
        "15%",
        "0.3",
        ".3",
        "(3)",
        "3.",
        "-1.50",
    ]
    stricter = more = 0
    for _ in range(TRIES):
        answer, right = dice.choice(numbers), dice.choice(numbers)
        theirs = verl.search_r1_like_qa_em.em_check(answer, right)
        mine = score(f"<answer>{answer}</answer>", right)
        same = number(answer) == number(right)
        assert mine == same, (answer, right)
        stricter += theirs > mine
        more += mine > theirs
    assert stricter > 20 and more > 20


def latex(dice: random.Random) -> tuple[str, Fraction | None]:
    """A short answer, and the number that it is."""
    top, below = dice.randint(1, 4), dice.randint(1, 4)
    whole, part = Fraction(top), Fraction(top, below)
    forms: list[tuple[str, Fraction | None]] = [
        *((f"{top}{after}", whole) for after in ("", ".0", "^\\circ", "\\%", "\\text{ cm}")),
        *((f"{before}{top}", whole) for before in ("x=", "x = ", "\\$")),
        *((f"{before}.{top}", whole / 10) for before in ("", "0")),
        *((f"{top}{comma}000", whole * 1000) for comma in ("", ",")),
        (f"-{top}", -whole),
        (f"{top}/{below}", part),
        *((f"\\{kind}frac{{{top}}}{{{below}}}", part) for kind in ("", "d", "t")),
        *((f"\\frac{top}{after}", part) for after in (f"{below}", f"{{{below}}}")),
        (f"-\\frac{{{top}}}{{{below}}}", -part),
        *((text, None) for text in (f"\\sqrt{top}", f"\\sqrt{{{top}}}", f"{below}\\sqrt{{{top}}}")),
        *((text, None) for text in (f"({top}, {below})", f"\\left({top},{below}\\right)")),
        *((text, None) for text in (f"x^{top}+{below}", f"{top}\\pi", "\\text{A}", "A")),
    ]
    return dice.choice(forms)


def test_mathematical_answers_are_those_of_math(verl: SimpleNamespace) -> None:
    """What MATH's evaluation accepts is accepted here; what is accepted here only, are equal numbers."""
    dice, score = random.Random(2), ours(extract="boxed", compare="math")
    wraps = ("so $\\boxed{{{}}}$.", "\\boxed{{1}} no, \\boxed{{{}}}", "$\\boxed {} $", "none: {}")
    paid = more = 0
    for _ in range(TRIES):
        (answer, value), (right, wanted) = latex(dice), latex(dice)
        if dice.random() < 0.3:
            right, wanted = answer, value
        text = dice.choice(wraps).format(answer)
        theirs, mine = verl.math_reward.compute_score(text, right), score(text, right)
        if theirs != mine:
            assert mine == 1.0 and value is not None and value == wanted, (text, right)
        paid += theirs == 1.0
        more += mine > theirs
    assert paid > TRIES / 5 and more > 10


@pytest.mark.parametrize(("method", "extract"), [("strict", "hashes"), ("flexible", "number")])
def test_numeric_answers_are_those_of_gsm8k(verl: SimpleNamespace, method: str, extract: str) -> None:
    """What verl accepts is accepted here; what is accepted here only, is the same number in another form."""
    dice, score = random.Random(3), ours(extract=extract, compare="numeric")
    numbers = ["3", "-3", "30", "3.0", "3.", "1,234", "1234", "$1,234", "0.5", ".5", "12.50", "12.5"]
    rights = ["3", "-3", "30", "1234", "0.5", "12.5"]
    wraps = (
        "2 + 2 = 4\n#### {}",
        "#### 7\n#### {}",
        "#### {} apples",
        "no 5 but {}",
        "#### {}\nThat is it",
        "none",
    )
    paid = more = 0
    for _ in range(TRIES):
        answer, right = dice.choice(numbers), dice.choice(rights)
        text = dice.choice(wraps).format(answer)
        theirs = verl.gsm8k.compute_score(text, right, method=method)
        mine = score(text, right)
        if theirs != mine:
            assert mine == 1.0 and number(answer) == number(right), (text, right)
        paid += theirs == 1.0
        more += mine > theirs
    assert paid > TRIES / 50 and more > 10


def calls(dice: random.Random, names: list[str]) -> list[dict[str, Any]]:
    keys, values = ["order", "amount", "zip", "note"], [7, "7", 7.5, True, None, [1, 2], {"a": 1}]
    return [
        {
            "name": name,
            "parameters": {key: dice.choice(values) for key in dice.sample(keys, dice.randint(0, 3))},
        }
        for name in dice.sample(names, dice.randint(0, len(names)))
    ]


def parsed(made: list[dict[str, Any]]) -> list[ParsedCall]:
    return [ParsedCall(call["name"], call["parameters"]) for call in made]


def test_tool_calls_are_scored_as_by_toolrl(verl: SimpleNamespace) -> None:
    """Of different tools, in any order. None expected and some made is 0 here; there, such a task is not scored."""
    dice, values = random.Random(4), set()
    for _ in range(TRIES):
        expected = calls(dice, ["refund", "lookup", "reply"])
        made = expected[::-1] if dice.random() < 0.1 else calls(dice, ["refund", "lookup", "reply", "cancel"])
        if not expected:
            continue
        theirs = verl.rlla.compute_tool_call_reward(expected, made, 1.0, 0.0, False)
        assert match(parsed(made), parsed(expected)) == pytest.approx(theirs, abs=1e-9), (made, expected)
        values.add(round(theirs, 3))
    assert len(values) > 50 and {0.0, 1.0} <= values


def test_several_calls_of_one_tool_are_never_scored_below_toolrl(verl: SimpleNamespace) -> None:
    """ToolRL gives each expected call the best one that is left; here, the best pairs of all come first."""
    dice, better = random.Random(5), 0
    for _ in range(TRIES):
        expected, made = ([call for _ in range(3) for call in calls(dice, ["refund"])] for _ in range(2))
        if not expected:
            continue
        theirs = verl.rlla.compute_tool_call_reward(expected, made, 1.0, 0.0, False)
        mine = match(parsed(made), parsed(expected))
        better += mine > theirs + 1e-9
        assert 0 <= mine <= 1
        if sorted(map(json.dumps, made)) == sorted(map(json.dumps, expected)):
            assert mine == 1.0
    assert better > 0
