"""What a reward program may say."""

import pytest

from workers.errors import InvalidRecord
from workers.programs.sandbox import ProgramFailure, ProgramResult, run_program
from workers.programs.source import MODULES, read_program

GOOD = "def reward(trajectory):\n    return 1.0\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "has no function `reward`"),
        ("def rewards(t):\n    return 1", "has no function `reward`"),
        ("class A:\n    def reward(t):\n        return 1", "has no function `reward`"),
        ("def reward():\n    return 1", "line 1: `reward` must take one argument"),
        ("def reward(a, b):\n    return 1", "line 1: `reward` must take one argument"),
        (GOOD + "def step_rewards(a, *, b):\n    return []", "line 3: `step_rewards` must take one argument"),
        (GOOD + "def f(:\n    pass", "line 3: "),
        (GOOD + "return 1", "line 3: `return`"),
        (GOOD + "if True:\n    return 1", "line 4: `return`"),
        (GOOD + "yield 1", "line 3: `yield` is not available; collect the values in a list."),
        (
            "def reward(t):\n    return sum(f())\ndef f():\n    yield from [1]",
            "line 4: `yield` is not available",
        ),
        ("import os\n" + GOOD, "line 1: the module os is not available; there are base64"),
        ("from os.path import join\n" + GOOD, "line 1: the module os.path is not available"),
        (GOOD + "open('x')", "line 3: `open` is not available: a program has no files"),
        (GOOD + "x = '\0'", "null bytes"),
        (GOOD + "x = '\ud800'", "cannot be read"),
        (GOOD + "x = " + "-" * 20_000 + "1", "cannot be read"),
        (GOOD + "x = a" + ".a" * 20_000, "cannot be read"),
        (GOOD + "x = " + "(" * 20_000, "line 3: "),
        (GOOD + "#" * 50_000, "may have 50,000"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(code: str, said: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_program(code)
    assert said in caught.value.message


def test_every_module_that_is_offered_is_there() -> None:
    code = "".join(f"import {name}\n" for name in MODULES) + GOOD
    assert run_program(read_program(code), [{}]) == [ProgramResult(1.0)]


def test_arguments_with_defaults_are_no_hindrance() -> None:
    code = "def reward(trajectory, bonus=2):\n    return bonus"
    assert run_program(read_program(code), [{}]) == [ProgramResult(2.0)]


def test_texts_over_several_lines_are_kept_and_lines_are_counted_as_written() -> None:
    code = (
        'TEXT = """a\n  b\nc"""\nNAME = "x\\\ny"\n'
        "def reward(t):\n\tif len(TEXT + NAME) != 9:\n\t\treturn 0\n\treturn 1 / t['zero']\n"
    )
    program = read_program(code.replace("\n", "\r\n"))
    assert run_program(program, [{"zero": 1}]) == [ProgramResult(1.0)]
    (failure,) = run_program(program, [{"zero": 0}])
    assert isinstance(failure, ProgramFailure)
    assert failure.message == "line 9: ZeroDivisionError: division by zero (in `return 1 / t['zero']`)."
    f_string = 'X = 1\ndef reward(t):\n    return len(f"""{X}\n{X}""")'
    assert run_program(read_program(f_string), [{}]) == [ProgramResult(3.0)]


def test_the_hash_is_that_of_the_code() -> None:
    assert read_program(GOOD).hash == read_program(GOOD).hash != read_program(GOOD + "\n").hash
