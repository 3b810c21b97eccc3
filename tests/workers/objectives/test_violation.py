"""Labels of prefixes by hand, the loss, and what is refused."""

import math
from typing import Any

import pytest
import torch

from workers.errors import RewardError
from workers.objectives import Example
from workers.objectives.violation import OBJECTIVE, first_violation, prefix_labels, prefix_loss
from workers.schema import Step, StepLabelRecord, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.schema.recipe_keys import parse_new_recipe


def record(steps: int, **labels: Any) -> StepLabelRecord:
    rows = tuple(Step(source="agent", features=(0.0,)) for _ in range(steps))
    return StepLabelRecord(trajectory=Trajectory(steps=rows, task=Task(id="t")), annotator="a", **labels)


def violating(steps: int, at: int | None) -> StepLabelRecord:
    return record(steps, has_first_error=True, first_error=at)


class TestLabels:
    @pytest.mark.parametrize(
        ("horizon", "wanted"),
        [
            (0, [True] * 6),
            (1, [False, False, True, True, True, True]),
            (2, [False, True, True, True, True, True]),
        ],
    )
    def test_of_a_violation_at_the_third_of_five_steps(self, horizon: int, wanted: list[bool]) -> None:
        assert prefix_labels(violating(5, 2), horizon) == wanted

    def test_without_one(self) -> None:
        assert prefix_labels(violating(2, None), 0) == [False] * 3

    def test_what_no_one_labelled_is_unknown(self) -> None:
        """Good, unknown, good, bad: within one step, only what the first three leave open is not known."""
        partly = record(4, labels={0: "good", 2: "good", 3: "bad"})
        assert prefix_labels(partly, 1) == [False, None, None, True, True]
        assert prefix_labels(partly, 0) == [True] * 5
        assert prefix_labels(record(2, labels={0: "good"}), 0) == [None] * 3

    def test_first_violation(self) -> None:
        assert first_violation(violating(3, 1)) == (True, 1)
        assert first_violation(violating(3, None)) == (True, None)
        assert first_violation(record(3, labels={0: "good", 2: "bad"})) == (False, 2)
        assert first_violation(record(2, labels={0: "good", 1: "neutral"})) == (True, None)


class TestLoss:
    def test_by_hand(self) -> None:
        """-log s(-1) of a violation with log-odds 1 against it, and -log s(1) of none."""
        found = prefix_loss(torch.tensor([[1.0], [1.0]]), torch.tensor([1.0, 0.0])).squeeze(1)
        assert found.tolist() == pytest.approx([math.log1p(math.e), math.log1p(1 / math.e)])

    def test_sums_over_prefixes(self, recipe: Any, batch: Any) -> None:
        """Of 3 and 2 prefixes, 2.5 on average, each of log 2 at 0."""
        records = [violating(2, 1), violating(1, None)]
        given = batch("violation", records, [(0.0, 0.0, 0.0), (0.0, 0.0)], heads=2)
        objective = OBJECTIVE(recipe(objective="violation"), given.examples)
        assert objective(given).tolist() == [
            pytest.approx([count * math.log(2) / 2.5] * 2, rel=1e-6) for count in (3, 2)
        ]

    def test_of_whole_trajectories_alone(self, recipe: Any, batch: Any) -> None:
        given = batch("violation", [violating(2, 1)], [(5.0, 5.0, 0.0)])
        objective = OBJECTIVE(recipe(objective="violation", prefixes=False), given.examples)
        assert objective(given).tolist() == [pytest.approx([math.log(2)], rel=1e-6)]

    def test_unknown_prefixes_get_no_gradient(self, recipe: Any, batch: Any) -> None:
        given = batch("violation", [record(2, labels={0: "good"})], [(0.3, 0.2, 0.1)])
        objective = OBJECTIVE(recipe(objective="violation", horizon=1), given.examples)
        objective(given).sum().backward()
        gradient = given.outputs.values.flat.grad
        assert gradient[0] != 0 and gradient[1:].tolist() == [[0.0], [0.0]]

    def test_accuracy(self, recipe: Any, batch: Any) -> None:
        given = batch("violation", [violating(2, 1)], [(0.5, -0.5, -0.5)])
        objective = OBJECTIVE(recipe(objective="violation", horizon=1), given.examples)
        assert objective.validation_metrics(given)["accuracy"].tolist() == [1.0, 1.0, 1.0]


class TestRefused:
    def test_one_kind(self, recipe: Any) -> None:
        for at, message in ((0, "without one too"), (None, "its step as bad")):
            examples = [Example("violation", violating(2, at), (0,))]
            assert message in str(OBJECTIVE.validate_dataset(examples, recipe(objective="violation")))

    def test_nothing_known(self, recipe: Any) -> None:
        reason = OBJECTIVE.reject_reason(record(2, labels={0: "good"}), recipe(objective="violation"))
        assert reason == "of which nothing tells whether a violation comes"

    def test_keys(self) -> None:
        assert parse_recipe({"objective": "violation"}).aggregation == "value"
        with pytest.raises(RewardError, match="use 'value'"):
            parse_recipe({"objective": "violation", "aggregation": "min"})
        with pytest.raises(RewardError, match="objective = 'violation'"):
            parse_new_recipe({"objective": "td", "horizon": 3})
