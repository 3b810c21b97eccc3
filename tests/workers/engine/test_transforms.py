"""Transforms keep to the bounds they state."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engine.transforms import apply, clip, normalise, squash
from workers.errors import InvalidRecord
from workers.schema.endpoints import Clip, Normalise, Squash, parse_spec

numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e3)


def test_numbers_by_hand() -> None:
    assert normalise(3.0, 1.0, 4.0) == 0.5
    assert clip(1.0, 0.25) == 0.0
    assert clip(-1.0, 0.25) == -1.25
    assert squash(0.0, 3.0) == 0.0
    assert squash(3.0, 3.0) == pytest.approx(3 * math.tanh(1))
    assert apply((Normalise(), Squash(2.0), Clip(0.5)), 1.0) == pytest.approx(
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


MAIN = {"name": "main", "model": "p/m@1"}


def test_a_spec_is_filled_in_and_comes_back() -> None:
    spec = parse_spec({"components": [MAIN], "transforms": [{"type": "squash"}]})
    assert spec.transforms == (Normalise(), Squash(3.0))
    assert spec.models == ("p/m@1",)
    assert parse_spec(spec.to_builtins()) == spec


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"components": []}, "/components"),
        ({"components": [MAIN, MAIN]}, "/components/1/name"),
        ({"components": [MAIN | {"weight": 0}]}, "/components/0/weight"),
        ({"components": [MAIN | {"type": "judge"}]}, "/components/0/type"),
        ({"components": [MAIN | {"colour": 1}]}, "/components/0/colour"),
        ({"components": [{"name": "main"}]}, "/components/0/model"),
        ({"components": [MAIN], "transforms": [{"type": "delta"}]}, "/transforms/0/type"),
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
