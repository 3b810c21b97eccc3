"""Training computes in bfloat16 where that is quicker, which is measured."""

from dataclasses import replace

import pytest
import torch

from workers.schema.recipe import Recipe
from workers.train import precision
from workers.train.precision import bfloat16_gain, uses_bfloat16

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("has_instructions", "gain", "expected"),
    [(True, 4.0, True), (True, 1.1, False), (True, 0.6, False), (False, 4.0, False)],
)
def test_a_processor_that_is_not_quicker_in_bfloat16_trains_in_float32(
    monkeypatch: pytest.MonkeyPatch, has_instructions: bool, gain: float, expected: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_instructions)
    monkeypatch.setattr(precision, "bfloat16_gain", lambda: gain)
    assert uses_bfloat16(Recipe(), CPU) is expected


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_what_the_recipe_says_is_not_measured(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setattr(precision, "bfloat16_gain", lambda: pytest.fail("it was measured"))
    assert uses_bfloat16(replace(Recipe(), precision=wanted), CPU) is (wanted == "bfloat16")  # type: ignore[arg-type]


def test_the_measurement_is_made_once_and_draws_no_numbers_of_the_training() -> None:
    bfloat16_gain.cache_clear()
    before = torch.get_rng_state()
    gain = bfloat16_gain()
    assert 0.01 < gain < 100
    assert bfloat16_gain() == gain  # a second measurement would differ
    assert torch.equal(torch.get_rng_state(), before)
