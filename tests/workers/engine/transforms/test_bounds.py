"""Transforms keep to the bounds they state."""

import math
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engine.composition import normalise
from workers.engine.item_score import ItemScore
from workers.engine.transforms import TransformChain
from workers.engine.transforms.clip import clip
from workers.engine.transforms.delta import apply as delta
from workers.engine.transforms.delta import differences
from workers.engine.transforms.gate import gate
from workers.engine.transforms.pessimism import pessimism
from workers.engine.transforms.squash import squash
from workers.errors import InvalidRecord, RewardError
from workers.schema.endpoints import parse_spec
from workers.schema.transforms import Clip, Delta, Gate, Normalise, Pessimism, Squash

numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e3)


def item_score(reward: float, **fields: Any) -> ItemScore:
    return ItemScore(
        **({"reward": reward, "raw": reward, "offset": 0.0, "std": None, "steps": (reward,)} | fields)
    )


def apply(transforms: tuple[Any, ...], score: ItemScore, *, is_additive: bool = True) -> ItemScore:
    (found,) = TransformChain(transforms, is_additive=is_additive).apply([score])
    return found


def test_numbers_by_hand() -> None:
    assert normalise(3.0, 1.0, 4.0) == 0.5
    assert clip(1.0, 0.25) == 0.0
    assert clip(-1.0, 0.25) == -1.25
    assert squash(0.0, 3.0) == 0.0
    assert squash(3.0, 3.0) == pytest.approx(3 * math.tanh(1))
    assert apply((Normalise(), Squash(scale=2.0), Clip(eta=0.5)), item_score(1.0)).reward == pytest.approx(
        min(2 * math.tanh(0.5) - 0.5, 0.0)
    )


@given(numbers, numbers, numbers)
def test_clip_is_never_positive_and_keeps_order(a: float, b: float, eta: float) -> None:
    assert clip(a, eta) <= 0
    assert clip(min(a, b), eta) <= clip(max(a, b), eta)


@given(numbers, numbers, positive)
def test_squash_keeps_to_its_scale_and_order(a: float, b: float, scale: float) -> None:
    assert abs(squash(a, scale)) <= scale
    assert squash(min(a, b), scale) <= squash(max(a, b), scale)


@given(numbers, positive, positive)
def test_pessimism_is_at_most_the_reward(reward: float, std: float, k: float) -> None:
    assert pessimism(reward, std, k) <= reward
    assert pessimism(reward, 0.0, k) == reward


@given(numbers, numbers, numbers, numbers)
def test_a_gate_lets_through_or_says_otherwise(
    reward: float, value: float, at: float, otherwise: float
) -> None:
    assert gate(reward, value, at, otherwise) == (reward if value >= at else otherwise)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30))
def test_what_differences_gather_is_the_score_of_the_step(steps: list[float]) -> None:
    gathered = list(accumulate(differences(steps)))
    assert gathered == pytest.approx(steps, abs=1e-9)
    assert max(map(abs, gathered)) <= max(map(abs, steps)) + 1e-9


def test_delta_by_hand() -> None:
    """A sum of steps 1, 3, 2 with the scale 2: the raw reward 6 becomes the last step's 2, the reward 4/2 less."""
    before = item_score(2.5, raw=6.0, offset=0.0, steps=(1.0, 3.0, 2.0), unit=0.5)
    after = delta(Delta(), before)
    assert (after.raw, after.reward, after.steps) == (2.0, 0.5, (1.0, 2.0, -1.0))
    assert sum(after.steps) == after.raw - after.offset


step_lists = st.lists(st.floats(-10, 10), min_size=1, max_size=80)


def gathered(transforms: tuple[Any, ...], steps: list[float], unit: float, start: float) -> list[float]:
    """Accumulated step reward on the reward scale, of an item whose reward before its first step is `start`."""
    score = item_score(start + unit * math.fsum(steps), steps=tuple(steps), unit=unit)
    return list(accumulate(unit * step for step in apply(transforms, score).steps))


@given(step_lists, positive, numbers, numbers)
def test_steps_gather_no_more_than_clip_allows(
    steps: list[float], unit: float, start: float, eta: float
) -> None:
    found = gathered((Normalise(), Clip(eta=eta)), steps, unit, start)
    most = -clip(start, eta)  # from where the trajectory starts up to the bound
    slack = 1e-9 * (1 + abs(start) + abs(eta) + unit * sum(map(abs, steps)))
    assert max(found) <= most + slack
    assert found[-1] == pytest.approx(
        clip(start + unit * math.fsum(steps), eta) - clip(start, eta), abs=slack
    )


@given(step_lists, positive, numbers, positive)
def test_steps_gather_no_more_than_squash_allows(
    steps: list[float], unit: float, start: float, scale: float
) -> None:
    found = gathered((Normalise(), Squash(scale=scale)), steps, unit, start)
    assert max(map(abs, found)) <= 2 * scale + 1e-6 * (1 + scale)


def test_repeating_a_good_step_gains_nothing_past_the_bound() -> None:
    assert gathered((Normalise(), Clip(eta=0.0)), [0.83] * 80, 1.0, -1.0)[-1] == pytest.approx(1.0)
    assert gathered((Normalise(), Clip(eta=0.0)), [0.83] * 80, 1.0, 0.0)[-1] == 0.0
    assert gathered((Normalise(),), [0.83] * 80, 1.0, 0.0)[-1] == pytest.approx(66.4)


def test_steps_behind_a_closed_gate_gain_nothing() -> None:
    score = item_score(3.0, steps=(1.0, 2.0), values={"verified": 0.0})
    assert apply((Normalise(), Gate(component="verified")), score).steps == (0.0, 0.0)


@given(step_lists, numbers)
def test_process_rewards_are_bounded_one_by_one(steps: list[float], eta: float) -> None:
    score = item_score(0.0, steps=tuple(steps), unit=0.5, zero=1.0)
    found = apply((Normalise(), Clip(eta=eta)), score, is_additive=False).steps
    assert [0.5 * step for step in found] == pytest.approx([clip(1 + 0.5 * step, eta) for step in steps])
    assert sum(found) <= 0


def test_in_their_order() -> None:
    given_ = item_score(1.5, std=0.25, values={"verified": 0.4})
    steps = (Normalise(), Pessimism(k=2), Gate(component="verified", otherwise=-3))
    assert apply(steps, given_).reward == -3.0
    assert apply(steps[:2], given_).reward == 1.0
    assert apply((*steps, Clip(eta=-4)), given_).reward == 0.0
    assert apply((Normalise(), Gate(component="verified", at_least=0.4)), given_).reward == 1.5


def test_pessimism_without_an_ensemble_is_refused() -> None:
    with pytest.raises(RewardError, match="single head"):
        apply((Normalise(), Pessimism()), item_score(1.0))


MAIN = {"name": "main", "model": "p/m@1"}


def test_a_spec_is_filled_in_and_comes_back() -> None:
    spec = parse_spec({"components": [MAIN], "transforms": [{"type": "squash"}]})
    assert spec.transforms == (Normalise(), Squash(scale=3.0))
    assert spec.models == ("p/m@1",)
    assert parse_spec(spec.to_builtins()) == spec


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"components": []}, "/components"),
        ({"components": [MAIN, MAIN]}, "/components/1/name"),
        ({"components": [MAIN | {"weight": 0}]}, "/components/0/weight"),
        ({"components": [MAIN | {"type": "jury"}]}, "/components/0/type"),
        ({"components": [MAIN | {"colour": 1}]}, "/components/0/colour"),
        ({"components": [{"name": "main"}]}, "/components/0/model"),
        ({"components": [MAIN], "transforms": [{"type": "spline"}]}, "/transforms/0/type"),
        ({"components": [MAIN], "transforms": [{"type": "clip"}, {"type": "delta"}]}, "/transforms/2"),
        ({"components": [MAIN], "transforms": [{"type": "gate"}]}, "/transforms/0/component"),
        (
            {"components": [MAIN], "transforms": [{"type": "gate", "component": "b"}]},
            "/transforms/1/component",
        ),
        ({"components": [MAIN], "transforms": [{"type": "pessimism", "k": -1}]}, "/transforms/0/k"),
        ({"components": [{"name": "t", "type": "token_penalty"}]}, "/components/0"),
        ({"components": [{"name": "p", "type": "pattern", "expression": ""}]}, "/components/0/expression"),
        ({"components": [MAIN], "transforms": [{"type": "clip", "eta": "a"}]}, "/transforms/0/eta"),
        ({"components": [MAIN], "transforms": [{"type": "squash", "scale": 0}]}, "/transforms/0/scale"),
        ({"components": [MAIN], "transforms": [{"type": "clip"}, {"type": "normalise"}]}, "/transforms/1"),
        ({"components": [MAIN], "colour": 1}, "/colour"),
    ],
)
def test_a_bad_spec_says_where(spec: dict, pointer: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parse_spec(spec)
    assert caught.value.pointer == pointer
