"""Numbers worked out by hand; s(x) = 1 / (1 + e^-x)."""

import math

import numpy as np
import pytest

from workers.evaluate.calibration import (
    expected_calibration_error,
    fit_temperature,
    log_loss,
    reliability_curve,
)


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def test_log_loss() -> None:
    assert log_loss(np.array([0.0])) == pytest.approx(math.log(2))
    assert log_loss(np.array([logit(0.8), -logit(0.8)])) == pytest.approx(
        (-math.log(0.8) - math.log(0.2)) / 2
    )
    assert log_loss(np.array([1000.0])) == 0.0


def test_a_calibrated_model_has_no_error() -> None:
    margins = [logit(0.8)] * 8 + [-logit(0.8)] * 2  # says 0.8, right 8 times of 10
    assert expected_calibration_error(margins, 1.0) == pytest.approx(0.0, abs=1e-9)


def test_the_error_is_confidence_without_being_right() -> None:
    margins = [logit(0.82)] * 6 + [-logit(0.82)] * 4  # bin 0.8..0.85: |0.82 - 0.6|
    margins += [logit(0.97)] * 10  # bin 0.95..1: |0.97 - 1|
    assert expected_calibration_error(margins, 1.0) == pytest.approx((10 * 0.22 + 10 * 0.03) / 20)
    assert reliability_curve(margins, 1.0) == [
        (pytest.approx(0.82), pytest.approx(0.6), 10),
        (pytest.approx(0.97), 1.0, 10),
    ]


def test_the_temperature_undoes_overconfidence() -> None:
    true = [logit(0.8)] * 80 + [-logit(0.8)] * 20
    assert fit_temperature([3 * margin for margin in true]) == pytest.approx(3.0, rel=1e-3)
    assert fit_temperature(true) == pytest.approx(1.0, rel=1e-3)


def test_too_few_to_fit_one() -> None:
    assert fit_temperature([5.0] * 9) == 1.0


def test_a_model_that_is_always_right_has_a_bounded_temperature() -> None:
    assert fit_temperature([1.0] * 20) == pytest.approx(1 / 50, rel=1e-3)
