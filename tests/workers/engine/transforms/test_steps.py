"""Transforms of steps: numbers by hand, and bounds of what steps gather."""

import math
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engine.item_score import ItemScore
from workers.engine.repeats import repeated_steps
from workers.engine.transforms import TransformChain
from workers.engine.transforms.krc import signed_geometric_mean
from workers.schema import ScoreInput, parse_item
from workers.schema.transforms import (
    Gate,
    GeometricMean,
    NoRepeats,
    Normalise,
    Redistribute,
    Shaping,
    StepClip,
    StepSquash,
    TurnGate,
)

steps = st.lists(st.floats(-10, 10), min_size=1, max_size=80)
units = st.sampled_from([0.01, 1.0, 7.0, -2.0])
positive = st.floats(1e-2, 1e2)


def item(gains: list[float], unit: float = 1.0, *, start: float = 0.0, **fields: Any) -> ItemScore:
    total = start + math.fsum(gains)
    return ItemScore(total, total, 0.0, None, tuple(gain / unit for gain in gains), unit, **fields)


def apply(transform: Any, score: ItemScore) -> ItemScore:
    (found,) = TransformChain((Normalise(), transform)).apply([score])
    return found


def path(gains: list[float], start: float = 0.0) -> tuple[float, ...]:
    return tuple(accumulate(gains, initial=start))


@given(steps, units, st.floats(-3, 3))
def test_step_clip_never_gathers_above_zero(gains: list[float], unit: float, eta: float) -> None:
    found = apply(StepClip(eta=eta), item(gains, unit))
    assert max(accumulate(found.gains)) <= 1e-9
    assert found.reward == pytest.approx(math.fsum(min(gain - eta, 0) for gain in gains), abs=1e-6)


@given(steps, units, positive, positive)
def test_step_squash_keeps_each_step_and_what_has_gathered(
    gains: list[float], unit: float, scale: float, total: float
) -> None:
    found = apply(StepSquash(scale=scale, total=total), item(gains, unit))
    assert max(map(abs, found.gains)) <= scale + 1e-9
    assert max(map(abs, accumulate(found.gains))) <= total + 1e-9


@given(steps, units, st.floats(0.5, 1), positive, positive, st.floats(-5, 5))
def test_shaping_gathers_no_more_than_two_bounds(
    gains: list[float], unit: float, gamma: float, weight: float, bound: float, start: float
) -> None:
    """Discounted by gamma, after any step; and -weight * phi(start) at the end, whatever happened between."""
    score = item([0.0] * len(gains), unit, potentials={"near": path(gains, start)})
    found = apply(Shaping(component="near", gamma=gamma, weight=weight, bound=bound), score)
    discounted = list(accumulate(gamma**t * gain for t, gain in enumerate(found.gains)))
    slack = 1e-9 * (1 + weight * bound)
    assert max(map(abs, discounted)) <= 2 * weight * bound + slack
    expected = -weight * bound * math.tanh(start / bound)
    assert discounted[-1] == pytest.approx(expected, abs=slack)
    assert found.reward == pytest.approx(expected, abs=slack)


def test_shaping_by_hand() -> None:
    """phi 0, 1, 0.5 with a bound so wide that nothing is squashed, gamma 0.5; the last one counts as 0."""
    score = item([0.0, 1.0], potentials={"near": (0.0, 1.0, 0.5)})
    shaping = Shaping(component="near", gamma=0.5, weight=2.0, bound=1e6)
    found = apply(shaping, score)
    assert found.gains == pytest.approx((2 * 0.5, 1 - 2 * 1.0))
    assert found.reward == pytest.approx(1.0)
    kept = apply(Shaping(component="near", gamma=0.5, weight=2.0, bound=1e6, end="kept"), score)
    assert kept.gains == pytest.approx((2 * 0.5, 1 + 2 * (0.25 - 1.0)))
    assert kept.reward == pytest.approx(1 + 2 * 0.25 * 0.5)


def test_shaping_fades_by_what_the_others_of_the_group_reach() -> None:
    """Of three with the rewards 1, 0, 0: half of the others' are below 1 for each of the losers, all for the winner."""
    scores = [item([gain], potentials={"near": (1.0, 0.0)}) for gain in (1.0, 0.0, 0.0)]
    shaping = Shaping(component="near", bound=1e6, fades_at=1.0)
    found = TransformChain((Normalise(), shaping)).apply(scores, [[0, 1, 2]])
    assert [score.reward for score in found] == pytest.approx([1 - 1.0, -0.5, -0.5])
    alone = TransformChain((Normalise(), shaping)).apply(scores)
    assert [score.reward for score in alone] == pytest.approx([0.0, -1.0, -1.0])
    solved = TransformChain((Normalise(), shaping)).apply([scores[0]] * 3, [[0, 1, 2]])
    assert [score.reward for score in solved] == [1.0] * 3


@given(steps, units, st.lists(st.floats(-5, 5), min_size=80, max_size=80))
def test_redistribution_keeps_the_return_and_never_turns(
    gains: list[float], unit: float, progress: list[float]
) -> None:
    score = item(gains, unit, start=2.0, potentials={"done": path(progress[: len(gains)])})
    found = apply(Redistribute(components=("done",)), score)
    assert found.reward == score.reward
    total = math.fsum(gains)
    assert math.fsum(found.gains) == pytest.approx(total, abs=1e-9)
    for gathered in accumulate(found.gains):
        assert min(total, 0) - 1e-9 <= gathered <= max(total, 0) + 1e-9


def test_redistribution_by_hand() -> None:
    """A return of 6 at the last step; progress 1, -1 (no credit), 2 of one score and 0, 0, 1 of another: 1, 0, 3."""
    potentials = {"a": (0.0, 1.0, 0.0, 2.0), "b": (5.0, 5.0, 5.0, 6.0)}
    score = item([0.0, 0.0, 6.0], potentials=potentials)
    assert apply(Redistribute(components=("a", "b")), score).gains == pytest.approx((1.5, 0.0, 4.5))
    flat = item([0.0, 0.0, 6.0], potentials={"a": (1.0,) * 4})
    assert apply(Redistribute(components=("a",)), flat).gains == pytest.approx((2.0, 2.0, 2.0))


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20))
def test_krc_is_at_most_the_largest_size(values: list[float]) -> None:
    assert abs(signed_geometric_mean(values)) <= max(map(abs, values))


def test_krc_by_hand() -> None:
    assert signed_geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert signed_geometric_mean([2.0, -8.0]) == pytest.approx(-4.0)
    assert signed_geometric_mean([-2.0, -8.0]) == pytest.approx(-4.0)
    assert signed_geometric_mean([2.0, 0.0]) == 0.0
    score = item([0.0, 3.0], potentials={"a": (1.0, 4.0, 4.0), "b": (1.0, 1.0, 4.0)})
    found = apply(GeometricMean(components=("a", "b")), score)
    assert found.reward == pytest.approx(4.0)
    assert found.gains == pytest.approx((1.0, 2.0))


@given(steps, units, st.lists(st.floats(-2, 2), min_size=80, max_size=80))
def test_a_turn_gate_only_takes(gains: list[float], unit: float, turns: list[float]) -> None:
    score = item(gains, unit, potentials={"turn": path(turns[: len(gains)])})
    found = apply(TurnGate(component="turn"), score)
    for after, before in zip(accumulate(found.gains), accumulate(gains), strict=True):
        assert after <= before + 1e-6
    assert found.reward <= score.reward + 1e-6


def test_a_hierarchy_of_gates() -> None:
    """DeepTravel: what the turn verifier does not pass gains nothing, and nothing counts without the whole."""
    turns = {"turn": (0.0, 1.0, 1.0, 2.0)}
    for value, reward, gains in ((1.0, 2.0, (1.0, -1.0, 2.0)), (0.0, -1.0, (0.0, 0.0, 0.0))):
        score = item([1.0, -1.0, 2.0], potentials=turns, values={"whole": value})
        hierarchy = (Normalise(), TurnGate(component="turn"), Gate(component="whole"))
        (found,) = TransformChain(hierarchy).apply([score])
        assert (found.reward, found.gains) == (reward, gains)
    unverified = item([1.0, 1.0, 2.0], potentials=turns)
    assert apply(TurnGate(component="turn"), unverified).gains == (1.0, 0.0, 2.0)


@given(steps, units, st.lists(st.integers(0, 4), min_size=80, max_size=80))
def test_repeats_gain_no_more_than_the_best_of_them(gains: list[float], unit: float, keys: list[int]) -> None:
    keys = keys[: len(gains)]
    found = apply(NoRepeats(), item(gains, unit, repeats=tuple(keys)))
    assert found.reward <= math.fsum(gains) + 1e-6
    for key in set(keys):
        paid = math.fsum(gain for gain, own in zip(found.gains, keys, strict=True) if own == key and gain > 0)
        best = max(gain for gain, own in zip(gains, keys, strict=True) if own == key)
        assert paid <= max(best, 0.0) + 1e-6


def test_80_repeats_of_a_good_step_gain_no_more_than_one() -> None:
    once = apply(NoRepeats(), item([0.83], repeats=(0,)))
    often = apply(NoRepeats(), item([0.83] * 80, repeats=(0,) * 80))
    assert once.reward == 0.83
    assert often.reward == pytest.approx(0.83)
    assert sum(often.gains) == 0.83


def conversation(*said: str) -> ScoreInput:
    return parse_item({"messages": [{"role": "assistant", "content": text} for text in said]})


def test_which_steps_repeat() -> None:
    long = "I will now search the catalogue for the blue lamp with the item number"
    found = repeated_steps(
        conversation(f"{long} 7", "Done.", f"{long.upper()}  7!", f"{long} 8", "Done, then"), 0.8
    )
    assert found == (0, 1, 0, 0, 4)
    assert repeated_steps(conversation(f"{long} 7", f"{long} 8"), 1.0) == (0, 1)
    assert repeated_steps(conversation("!", "?", "!"), 1.0) == (0, 1, 0)
    assert repeated_steps(conversation("привет мир 7", "пока дом 7", "Привет, мир 7"), 1.0) == (0, 1, 0)
    assert repeated_steps(parse_item({"features": [[1, 2], [3, 4], [1, 2]]}), 1.0) == (0, 1, 0)
    assert repeated_steps(parse_item({"input_ids": [1, 1, 1]}), 1.0) == (0,)
    assert repeated_steps(parse_item({"text": "a a a"}), 1.0) == (0,)
