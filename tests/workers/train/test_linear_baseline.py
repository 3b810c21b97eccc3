"""The linear model that other models have to beat, in every part of a report."""

from dataclasses import replace

import pytest
import torch

from tests.workers.conftest import preference, trajectory
from workers.errors import RewardError
from workers.evaluate.learned_baselines import BaselineScores, LearnedBaselines
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.report import report_of
from workers.models import ModelScore
from workers.schema import OutcomeRecord, RatingRecord, StepLabelRecord
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.linear_baseline import linear_scores
from workers.train.pipeline import train

pytestmark = pytest.mark.ml


def scored(record, value: float) -> ScoredRecord:
    return ScoredRecord(record, (ModelScore(value, 0.0, None, (value,)),))


class TestReport:
    """A model that is always wrong next to a linear one that is always right."""

    @pytest.fixture
    def runs(self) -> list:
        return [trajectory(f"run {number}", task=f"t{number}") for number in range(24)]

    @pytest.fixture
    def linear(self, runs) -> LearnedBaselines:
        return LearnedBaselines(
            models={
                "linear": {
                    run.content_hash: ModelScore(float(n % 2), 0.0, None, (n % 2 - 0.5,))
                    for n, run in enumerate(runs)
                }
            }
        )

    def test_outcomes(self, runs, linear) -> None:
        records = [
            scored(OutcomeRecord(trajectory=run, success=n % 2 == 1), -n % 2) for n, run in enumerate(runs)
        ]
        found = report_of(records, [], criteria={None}, learned=linear)["outcome"]["baselines"]["linear"]
        assert (found["auc"], found["difference"]) == (1.0, 0.0)
        wrong = [scored(each.record, 1.0 - n % 2) for n, each in enumerate(records)]
        found = report_of(wrong, [], criteria={None}, learned=linear)["outcome"]["baselines"]["linear"]
        assert (found["auc"], found["difference"]) == (1.0, -1.0)

    def test_ratings(self, runs, linear) -> None:
        records = [
            scored(RatingRecord(trajectory=run, rating=float(n % 2), scale=(0.0, 1.0), annotator="a"), n % 2)
            for n, run in enumerate(runs)
        ]
        wrong = [scored(each.record, 1.0 - n % 2) for n, each in enumerate(records)]
        found = report_of(wrong, [], criteria={None}, learned=linear)["scores"]["baselines"]["linear"]
        assert found["spearman"] == pytest.approx(1.0)
        assert found["difference"] == pytest.approx(-2.0)

    def test_first_errors_by_its_own_threshold(self, runs, linear) -> None:
        records = [
            scored(
                StepLabelRecord(
                    trajectory=run,
                    has_first_error=True,
                    first_error=None if n % 2 else 0,
                    annotator="a",
                ),
                0.5 - n % 2,
            )
            for n, run in enumerate(runs)
        ]
        steps = report_of(records, records, criteria={None}, learned=linear)["steps"]
        assert steps["baselines"]["linear"]["accuracy"] == 1.0
        assert steps["located"]["baselines"]["linear"]["accuracy"] == 1.0

    def test_what_it_does_not_have_is_no_baseline(self, runs, linear) -> None:
        other = [*runs, trajectory("unknown", task="u")]
        records = [
            scored(OutcomeRecord(trajectory=run, success=n % 2 == 1), n) for n, run in enumerate(other)
        ]
        baselines = report_of(records, [], criteria={None}, learned=linear)["outcome"]["baselines"]
        assert set(baselines) == {"longer", "shorter", "fewer_steps"}

    def test_first_errors_without_any_in_validation(self, runs, linear) -> None:
        records = [
            scored(StepLabelRecord(trajectory=run, has_first_error=True, first_error=n % 2, annotator="a"), 0)
            for n, run in enumerate(runs)
        ]
        steps = report_of(records, [], criteria={None}, learned=linear)["steps"]
        assert "linear" in steps["baselines"]
        assert "linear" in steps["located"]["baselines"]


def first_error(number: int) -> StepLabelRecord:
    return StepLabelRecord(
        trajectory=preference(number).a, has_first_error=True, first_error=0, annotator="ann"
    )


class TestScores:
    def test_it_learns_from_the_same_records(self) -> None:
        training, held_out = ([preference(n) for n in part] for part in (range(40), range(40, 60)))
        found = linear_scores(parse_recipe({}), training, [], held_out, seed=0).held_out
        right = [
            (found[record.a.content_hash].raw > found[record.b.content_hash].raw) == (record.choice == "a")
            for record in held_out
        ]
        assert all(right)

    @pytest.mark.parametrize(
        ("recipe", "validation", "annotators", "used"),
        [
            ({}, [preference(n) for n in range(20, 25)], "given", 25),
            ({"annotators": "learnt"}, [preference(20)], "given", 21),
            ({"annotators": "equal"}, [preference(20)], "equal", 21),
            ({}, [preference(20), first_error(21)], "given", 20),
        ],
    )
    def test_what_it_is_trained_on(self, monkeypatch, recipe, validation, annotators, used) -> None:
        """No tenth is set aside, and validation only where thresholds are fitted to it."""
        trainings: list = []

        def trainer_on(self, training, validation):
            trainings.append((self.recipe.annotators, len(training), len(validation)))
            raise RewardError("enough")

        monkeypatch.setattr(CrossValidation, "trainer_on", trainer_on)
        training = [preference(n) for n in range(20)]
        assert linear_scores(parse_recipe(recipe), training, validation, [], seed=0) == BaselineScores()
        assert trainings == [(annotators, used, 0)]

    def test_none_where_nothing_can_be_learnt(self) -> None:
        recipe = parse_recipe({"objective": "outcome"})
        assert linear_scores(recipe, [preference(0)], [], [preference(1)], seed=0) == BaselineScores()


@pytest.mark.parametrize(
    ("backbone", "record", "is_set_aside"),
    [("linear", preference, False), ("linear", first_error, True), ("step-encoder", preference, True)],
)
def test_folds_set_records_aside_where_something_reads_them(backbone, record, is_set_aside) -> None:
    folds = CrossValidation(parse_recipe({"backbone": backbone}), 0, torch.device("cpu"), no_report)
    training, validation = folds.split([record(number) for number in range(100)])
    assert len(training) + len(validation) == 100
    assert (len(validation) > 0) == is_set_aside


def test_a_report_names_it(run_directory, tiny_recipe, with_linear_baseline) -> None:
    records = [preference(number) for number in range(48)]
    splits = {"train": records[:24], "validation": records[24:30], "test": records[30:]}
    report = train(run_directory(replace(tiny_recipe, epochs=1), splits=splits))
    linear = report["preference"]["baselines"]["linear"]
    assert linear["accuracy"] == 1.0
    assert "a linear model" in report["preference"]["verdict"]
