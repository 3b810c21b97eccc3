"""A generative model's two ways to judge, on the same comparisons, by numbers worked out by hand."""

from typing import Any

import pytest

from workers.evaluate.bootstrap import mean_interval
from workers.evaluate.comparison import compare_predictions
from workers.evaluate.diagnostics import findings
from workers.evaluate.preference import Prediction, correctness
from workers.evaluate.verdicts import position_report, verdict_report
from workers.models.generative.model import Answer, PairComparison
from workers.models.generative.writer import Written
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory

WRITTEN = Written((), "", True)


def run_of(text: str, task: str) -> Trajectory:
    return Trajectory(steps=(Step(source="agent", message=(Part(text=text),)),), task=Task(id=task))


def judged(
    task: int, first: float, second: float, single: tuple[float, float], choice: Any = "a"
) -> Prediction:
    """first, second: log-odds of the one shown first, asked (a, b) and (b, a)."""
    compared = PairComparison(Answer(WRITTEN, first), Answer(WRITTEN, second))
    record = PreferenceRecord(
        a=run_of("x", f"t{task}"), b=run_of("longer", f"t{task}"), choice=choice, annotator="ann"
    )
    half = compared.log_odds / 2
    return Prediction(record, (half, -half), (1, 6), (1, 1), compared=compared, single=single)


FOUND = [
    judged(0, 2.0, -1.0, (1.0, 0.0)),  # both orders say a, and so do the scores
    judged(1, 2.0, -1.0, (0.0, 1.0)),  # together right, alone wrong
    judged(
        2, 3.0, 1.0, (0.5, 0.5)
    ),  # the one shown first either way, a more surely; equal scores are half right
    judged(3, 2.0, -1.0, (1.0, 0.0), choice="b"),  # wrong both ways
    judged(4, 2.0, -1.0, (1.0, 0.0), choice="tie"),  # no winner: not counted
]


def test_both_ways_are_measured_on_the_same_comparisons_with_their_intervals() -> None:
    found = verdict_report(FOUND)
    assert found is not None
    together, alone = found["pairwise"], found["pointwise"]
    assert (together["accuracy"], together["n"], together["tasks"]) == (0.75, 4, 4)
    assert (alone["accuracy"], alone["n"], alone["tasks"]) == (0.375, 4, 4)
    tasks = ["t0", "t1", "t2", "t3"]
    assert together["interval"] == mean_interval([1, 1, 1, 0], tasks)[1]
    assert alone["interval"] == mean_interval([1, 0, 0.5, 0], tasks)[1]
    assert together["consistency"] == 0.75
    assert together["consistency_interval"] == mean_interval([1, 1, 0, 1], tasks)[1]
    assert found["difference"] == 0.375 and found["interval"][0] <= 0.375 <= found["interval"][1]
    position = position_report(FOUND)
    assert position is not None and (position["n"], position["consistency"]) == (4, 0.75)
    assert position["first"] == 5 / 8 and position["accuracy"] == {"one_order": 5 / 8, "both_orders": 0.75}


def test_other_models_have_no_two_ways() -> None:
    plain = [Prediction(FOUND[0].record, (1.0, 0.0), (1, 1), (1, 1))]
    assert verdict_report(plain) is None and position_report(plain) is None
    assert plain[0].pointwise is plain[0]


def test_models_are_compared_by_single_scores_too() -> None:
    other = [Prediction(prediction.record, (1.0, 0.0), (1, 1), (1, 1)) for prediction in FOUND]
    together = compare_predictions(FOUND, other)
    alone = compare_predictions([prediction.pointwise for prediction in FOUND], other)
    assert together["difference"] == 0.0 and alone["difference"] == pytest.approx(0.375 - 0.75)
    assert correctness(FOUND[1].margin) == 1.0 and correctness(FOUND[1].pointwise.margin) == 0.0


def test_single_scores_at_chance_are_a_finding() -> None:
    part = {"accuracy": 0.5, "interval": [0.4, 0.6], "n": 90, "tasks": 30}
    (found,) = findings({"generative": {"pointwise": part}})
    assert (found["name"], found["kind"]) == ("chance", "pointwise") and "by single scores" in found[
        "sentence"
    ]
