"""Estimators that know more of a roll-out than its reward: numbers worked out by hand, and what was measured."""

import math
import re
from pathlib import Path

import pytest
from touchstone_client import (
    ESTIMATORS,
    GroupSignal,
    Rollout,
    advantages,
    group_signals,
    instruction_rewards,
)
from touchstone_client.advantages import WARNINGS

UNIT = 1 / math.sqrt(2)  # of two different values, standardised by the deviation of the sample


def steps(group: list[Rollout], estimator: str, **options) -> list[tuple[float, ...]]:
    return [entry.steps for entry in advantages([group], estimator, **options)[0]]


def test_dr_grpo_and_dapo() -> None:
    """Dr. GRPO does not divide. DAPO leaves out groups in which all or none succeed, though their rewards differ."""
    groups = [[Rollout(3), Rollout(1)], [Rollout(0.4), Rollout(0.2)], [Rollout(1), Rollout(0)]]
    assert [[e.trajectory for e in g] for g in advantages(groups, "dr_grpo")] == [
        [1, -1],
        pytest.approx([0.1, -0.1]),
        [0.5, -0.5],
    ]
    assert [[e.trajectory for e in g] for g in advantages(groups, "dapo", eps=0.0)] == [
        [0, 0],
        [0, 0],
        pytest.approx([UNIT, -UNIT]),
    ]
    assert advantages(groups[1:2], "dapo", eps=0.0, success=0.3)[0][0].trajectory == pytest.approx(UNIT)


def test_signals() -> None:
    groups = [[Rollout(1), Rollout(0), Rollout(0.5), Rollout(0.1)], [Rollout(1), Rollout(1)], []]
    assert group_signals(groups) == [GroupSignal(0.5, True), GroupSignal(1.0, False), GroupSignal(0.0, False)]
    assert group_signals(groups, 0.1)[0].success == 0.75


def test_reinforce_pp() -> None:
    """Rewards 1, 3 and 5, 7: mean 4, variance 20/3. Less the groups' means -1, 1, -1, 1: variance 4/3."""
    groups = [[Rollout(1), Rollout(3)], [Rollout(5), Rollout(7)]]
    found = [e.trajectory for g in advantages(groups, "reinforce_pp", eps=0.0) for e in g]
    assert found == pytest.approx([value / math.sqrt(20 / 3) for value in (-3, -1, 1, 3)])
    found = [e.trajectory for g in advantages(groups, "reinforce_pp_baseline", eps=0.0) for e in g]
    assert found == pytest.approx([value / math.sqrt(4 / 3) for value in (-1, 1, -1, 1)])


def test_by_instruction() -> None:
    """a: rewards 4 and 2, b: 2 alone and then with 0."""
    group = [
        Rollout(4, instruction=("a", "a")),
        Rollout(2, instruction=("a", "b")),
        Rollout(0, instruction=("b",)),
    ]
    found = advantages([group], "by_instruction", scale=False)[0]
    assert [entry.steps for entry in found] == [(1, 1), (-1, 1), (-1,)]
    assert [entry.trajectory for entry in found] == [1, 0, -1]
    assert instruction_rewards([group]) == {"a": 3.0, "b": 1.0}


def test_srgpo() -> None:
    """Two steps are one random group of two: 3 and 1 give UNIT and -UNIT. Omega 2, rewards 1 and 0."""
    group = [Rollout(1, (3,)), Rollout(0, (1,))]
    assert steps(group, "srgpo", omega=2.0, size=2, eps=0.0) == [
        pytest.approx((3 * UNIT,)),
        pytest.approx((-3 * UNIT,)),
    ]
    batch = [Rollout(0, tuple(float(i * j) for j in range(5))) for i in range(5)]
    drawn = [steps(batch, "srgpo", size=4, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    # Each random group sums to 0, hence all do.
    assert math.fsum(value for row in drawn[0] for value in row) == pytest.approx(0, abs=1e-9)


def test_empg() -> None:
    """Entropies 0 and 1 in each: g is 1 and 1/e over their mean (1 + 1/e) / 2, f of the next step zeta / e and 0."""
    group = [Rollout(1, entropies=(0, 1)), Rollout(0, entropies=(0, 1))]
    sure, unsure = 2 / (1 + 1 / math.e), 2 / (1 + math.e)
    after = 0.1 / math.e
    shift = after / 2  # the other terms sum to 0
    assert steps(group, "empg", zeta=0.1, eps=0.0) == [
        pytest.approx((UNIT * sure + after - shift, UNIT * unsure - shift)),
        pytest.approx((-UNIT * sure + after - shift, -UNIT * unsure - shift)),
    ]


def test_entropy_shares() -> None:
    group = [Rollout(1, entropies=(1, 3)), Rollout(0, entropies=(0, 0))]
    assert steps(group, "entropy_shares", scale=False) == [(0.25, 0.75), (-0.5, -0.5)]


def test_igpo() -> None:
    """Probabilities 1/4 then 1/2: the first turn gains 1/4, the last has the reward 1. The other: 0 and 0.

    Mean 5/16; a step has what it and the later ones add, the later ones halved.
    """
    group = [Rollout(1, logprobs=(math.log(0.25), math.log(0.5))), Rollout(0, logprobs=(-1.0, -1.0))]
    mean = 5 / 16
    assert steps(group, "igpo", gamma=0.5, scale=False) == [
        pytest.approx((0.25 - mean + 0.5 * (1 - mean), 1 - mean)),
        pytest.approx((-1.5 * mean, -mean)),
    ]


def test_m_grpo() -> None:
    """Three invocations of the searcher, with mean step rewards 4, 1 and 1: mean 2. The main agent's: 1/2 and -1/2."""
    group = [
        Rollout(1, (0, 3, 5, 0, 1), agent=("main", "search", "search", "main", "search")),
        Rollout(0, (0, 1, 0), agent=("main", "search", "main")),
    ]
    assert steps(group, "m_grpo", scale=False) == [(0.5, 2, 2, 0.5, -1), (-0.5, -1, -0.5)]
    plain = [Rollout(1, agent=("main", "search")), Rollout(0, agent=("main", "search"))]
    assert steps(plain, "m_grpo", scale=False) == [(0.5, 0.5), (-0.5, -0.5)]


def test_segments() -> None:
    """Segments of mean 2, 6 and 1: mean 3, so -1, 3 and -2; omega 1/2 and half a reward each way."""
    group = [Rollout(1, (1, 3, 6), segment=("a", "a", "b")), Rollout(0, (1,), segment=("a",))]
    assert steps(group, "segments", omega=0.5, scale=False) == [(0, 0, 2), (-1.5,)]
    unpaid = [Rollout(1, segment=("a", "b")), Rollout(0, segment=("a",))]
    assert steps(unpaid, "segments", omega=0.0, scale=False) == [(0.5, 0.5), (-0.5,)]


def test_foresight_and_history_window() -> None:
    """Steps 1, 2, 4 and 3, 0: with the next one 3, 6, 4 and 3, 0; at the places 0, 3 and -3, alone 0."""
    group = [Rollout(1, (1, 2, 4)), Rollout(0, (3, 0))]
    assert steps(group, "foresight", scale=False) == [(0.5, 3.5, 0.5), (-0.5, -3.5)]
    assert steps(group, "history_window", window=1, scale=False) == [(-0.5, 1.5, 0.5), (0.5, -1.5)]
    assert steps(group, "history_window", window=3, scale=False) == [(2.5, 3.5, 0.5), (-2.5, -3.5)]


def test_poad() -> None:
    """From the end, gamma 1/2, lam 1: 2 - 3 = -1; 3 - ... of the step before: 1 + 1/2 * 3 - 2 + 1/2 * -1 = 0; then the
    token before it: 2 - 1 + 0 = 1."""
    group = [Rollout(0, (1, 2), values=((1, 2), (3,)))]
    ((found,),) = advantages([group], "poad", gamma=0.5, lam=1.0)
    assert found.tokens == ((1.0, 0.0), (-1.0,))
    assert (found.trajectory, found.steps) == (1.0, (1.0, -1.0))


def test_pair_gain() -> None:
    """Before 0 and 2, after 3 and 1: gains 3 and -1."""
    group = [Rollout(0, pair="a"), Rollout(2, pair="b"), Rollout(3, pair="a"), Rollout(1, pair="b")]
    found = advantages([group], "pair_gain", scale=False)[0]
    assert [entry.trajectory for entry in found] == [-1, 1, 2, -2]


def test_co_reward() -> None:
    """The first phrasing's majority is 7, the second's 8: of the first one answer agrees, of the second one."""
    answers = [("p", "7"), ("p", "7"), ("p", "8"), ("q", "8"), ("q", "8"), ("q", "7")]
    group = [Rollout(0, twin=twin, answer=answer) for twin, answer in answers]
    found = advantages([group], "co_reward", scale=False)[0]
    third = 1 / 3
    assert [e.trajectory for e in found] == pytest.approx(
        [-third, -third, 2 * third, -third, -third, 2 * third]
    )
    tied = [Rollout(0, twin=twin, answer=answer) for twin, answer in (("p", "7"), ("p", "8"), ("q", "7"))]
    assert advantages([tied], "co_reward", scale=False)[0][2].trajectory == 0.0


@pytest.mark.parametrize(
    ("estimator", "group", "options", "message"),
    [
        ("empg", [Rollout(1)], {}, "roll-out 0 has no entropies"),
        ("empg", [Rollout(1, (1, 2), entropies=(1,))], {}, "1 entropies for 2 steps"),
        ("entropy_shares", [Rollout(1, entropies=(-1,))], {}, "at least 0"),
        ("igpo", [Rollout(1, logprobs=(0.5,))], {}, "at most 0"),
        ("poad", [Rollout(1, (1,), values=((),))], {}, "a step has no values"),
        ("pair_gain", [Rollout(1, pair="a")], {}, "pair 'a' has 1 roll-outs"),
        ("co_reward", [Rollout(1, twin="p", answer="7")], {}, "1 phrasings"),
        ("srgpo", [Rollout(1, (1,))], {"size": 1}, "a whole number, at least 2"),
        ("srgpo", [Rollout(1, (1,))], {"seed": 0.5}, "a whole number"),
        ("history_window", [Rollout(1, (1,))], {"window": 0}, "a whole number, at least 1"),
        ("poad", [Rollout(1, (1,), values=((1,),))], {"lam": 2}, "from 0 to 1"),
    ],
)
def test_what_they_cannot_do_without(estimator, group, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        advantages([group], estimator, **options)


def test_an_estimator_has_no_warning_where_the_documentation_shows_that_it_learns() -> None:
    """docs/policies.md, as the benchmark wrote it: with each mix, the interval of the true reward's rise is above 0."""
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(\w+)` \|(.*\(.*\[.*)\|$", text)
    lows = {name: re.findall(r"\[([+\N{MINUS SIGN}])[\d.]+,", cells) for name, cells in rows}
    assert set(lows) == set(ESTIMATORS) and {len(signs) for signs in lows.values()} == {3}
    assert {name for name, signs in lows.items() if signs != ["+"] * 3} == set(WARNINGS)
