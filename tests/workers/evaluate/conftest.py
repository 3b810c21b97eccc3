"""Predictions without a model: the numbers are given."""

import pytest

from workers.evaluate import Prediction


@pytest.fixture
def predicted(make_preference):
    """make(margin, ...): a strict comparison whose `a` was chosen, that the model sees with this margin."""

    def make(
        margin: float = 1.0,
        *,
        choice: str = "a",
        task: int = 0,
        length: tuple[int, int] = (10, 10),
        steps: tuple[int, int] = (1, 1),
    ) -> Prediction:
        record = make_preference(2 * task, choice=choice)
        return Prediction(record, (margin, 0.0), length, steps)

    return make
