"""Reward programs as a component: bounds, steps, and what happens where the code fails."""

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.engine.rules.test_rules import item
from workers.engine import Batcher, Version
from workers.engine.rules import programs
from workers.errors import InvalidRecord, RewardError
from workers.programs.sandbox import ProgramResult
from workers.schema import parse_item
from workers.schema.endpoints import parse_spec
from workers.schema.program_part import PythonProgram, hash_of_code

SHORT = "def reward(t):\n    return 1 / (len(t['steps']) - 2)\n"
numbers = st.floats(-1e6, 1e6)


def part(code: str = SHORT, **more: Any) -> PythonProgram:
    return PythonProgram(name="p", code=code, **({"low": 0.0, "high": 1.0} | more))


@given(
    numbers,
    st.lists(numbers, min_size=1, max_size=30),
    st.lists(numbers, min_size=2, max_size=2, unique=True),
)
def test_what_is_earned_is_bounded_after_every_step(
    total: float, steps: list[float], bounds: list[float]
) -> None:
    low, high = sorted(bounds)
    one = part(low=low, high=high)
    found = programs.score(one, ProgramResult(total, tuple(steps)), len(steps))
    assert len(found.step_rewards) == len(steps)
    tolerance = 1e-9 * max(abs(low), abs(high), 1)
    for count in range(1, len(steps) + 1):
        assert low - tolerance <= math.fsum(found.step_rewards[:count]) <= high + tolerance
    assert found.raw == pytest.approx(min(max(total, low), high), abs=tolerance)


def test_by_hand() -> None:
    one = part(low=-1.0, high=2.0)
    assert programs.score(one, ProgramResult(1.5, (1.0, 5.0, -0.5)), 3).step_rewards == (1.0, 1.0, -0.5)
    assert programs.score(one, ProgramResult(9.0), 3).step_rewards == (0.0, 0.0, 2.0)
    repeats = programs.score(one, ProgramResult(80.0, (1.0,) * 80), 80)
    assert (repeats.raw, sum(repeats.step_rewards[:2])) == (2.0, 2.0)


def test_an_item_whose_code_fails() -> None:
    good, bad = item("one", "two"), item("one")
    assert [score.raw for score in programs.rate(part(), [good, good])] == [1.0, 1.0]
    with pytest.raises(
        RewardError, match=r"program p failed: line 2: ZeroDivisionError.*`otherwise`"
    ) as caught:
        programs.rate(part(), [good, bad])
    assert caught.value.pointer == "/1"
    scores = programs.rate(part(otherwise=0.25), [good, bad])
    assert [(score.raw, score.flags) for score in scores] == [(1.0, ()), (0.25, ("program_failed",))]
    steps = SHORT + "def step_rewards(t):\n    return [1.0]"
    with pytest.raises(RewardError, match="returned 1 numbers, and the trajectory has 2 agent steps"):
        programs.rate(part(steps), [good])
    with pytest.raises(RewardError, match="input_ids") as caught:
        programs.rate(part(), [good, parse_item({"input_ids": [1]})])
    assert caught.value.pointer == "/1/input_ids"


def test_a_version_scores_with_it_and_flags_what_failed() -> None:
    spec = parse_spec(
        {
            "components": [
                {
                    "name": "p",
                    "type": "python",
                    "code": SHORT,
                    "low": 0,
                    "high": 1,
                    "otherwise": 0.25,
                    "weight": 2,
                },
                {"name": "s", "type": "step_penalty"},
            ]
        }
    )
    batcher = Batcher()
    try:
        version = Version(1, spec, {}, batcher, lambda _: None)
        good, bad = asyncio.run(version.score(version.render([item("one", "two"), item("one")])))
    finally:
        batcher.close()
    assert (good.components, good.flags) == ({"p": 2.0, "s": -2.0}, ())
    assert (bad.components, bad.flags) == ({"p": 0.5, "s": -1.0}, ("program_failed",))


@pytest.mark.parametrize(
    ("more", "pointer", "said"),
    [
        ({"low": 1, "high": 1}, "/low", "below `high`"),
        ({"otherwise": 2}, "/otherwise", "from 0 to 1"),
        ({"code": None}, "/program", "name@version"),
        ({"code_hash": "0" * 64}, "/code_hash", "leave it out"),
        ({"seconds": 11}, "/seconds", "10"),
    ],
)
def test_what_makes_no_sense(more: dict[str, Any], pointer: str, said: str) -> None:
    raw = {"name": "p", "type": "python", "code": SHORT, "low": 0, "high": 1} | more
    raw = {key: value for key, value in raw.items() if value is not None}
    with pytest.raises(InvalidRecord, match=said) as caught:
        parse_spec({"components": [raw]})
    assert caught.value.pointer == f"/components/0{pointer}"


def test_the_code_is_identified_by_its_hash() -> None:
    raw = {
        "name": "p",
        "type": "python",
        "code": SHORT,
        "low": 0,
        "high": 1,
        "code_hash": hash_of_code(SHORT),
    }
    spec = parse_spec({"components": [raw]})
    assert spec.to_builtins()["components"][0]["code_hash"] == hash_of_code(SHORT)
